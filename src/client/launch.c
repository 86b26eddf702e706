/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. What CUDA would refuse at once is refused here, from the cached attributes; the rest
 * goes into the ring, and the call is over.
 */
#include <string.h>

#include "client_capture.h"
#include "client_module.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "launch_check.h"
#include "wire_calls.h"

#define PARAMS_MAX 32764
#define ATTRIBUTES_MAX 64

/* The packed parameters of one launch: in place where they fit, else borrowed from the caller. */
struct params {
    const void *bytes;
    uint32_t size;
    _Alignas(8) unsigned char packed[4096];
};

static CUresult pack_each(const struct function *function, void **values, unsigned char *into)
{
    for (uint32_t i = 0; i < function->param_count; i++) {
        if (!values[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(into + function->layout[2 * i], values[i], function->layout[2 * i + 1]);
    }
    return CUDA_SUCCESS;
}

/* The other way to pass parameters: one buffer that the program has packed itself. */
static CUresult take_extra(void **extra, const struct function *function, struct params *params)
{
    size_t *size = NULL;

    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            params->bytes = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!params->bytes || !size || *size > PARAMS_MAX || *size < function->params_size)
        return function->params_size == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    params->size = function->params_size;
    return CUDA_SUCCESS;
}

static bool launch_attribute_travels(const CUlaunchAttribute *attribute)
{
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return false;
    default:
        return true;
    }
}

static CUresult check_attributes(const CUlaunchConfig *config)
{
    if (config->numAttrs > ATTRIBUTES_MAX || (config->numAttrs > 0 && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (!launch_attribute_travels(&config->attrs[i]))
            return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static bool cooperative(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            return config->attrs[i].value.cooperative != 0;
    return false;
}

/* All blocks of a cooperative grid must fit at once; only the driver knows how many do. */
static CUresult check_cooperative(const CUlaunchConfig *config, const struct function *function)
{
    struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags in = {
        .f = function->handle,
        .blockSize = (int32_t)(config->blockDimX * config->blockDimY * config->blockDimZ),
        .dynamicSMemSize = config->sharedMemBytes,
    };
    struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_reply out;
    const struct device *device = function->module->context->device;
    CUresult result =
        wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&client->channel, &in, &out);
    uint64_t room;

    if (result != CUDA_SUCCESS)
        return result;
    room = (uint64_t)out.numBlocks *
           (uint64_t)device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ > room
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

static CUresult send_launch(const CUlaunchConfig *config, const struct function *function,
                            const struct params *params, struct stream *stream)
{
    struct wire_cuLaunchKernelEx in = {
        .f = function->handle,
        .gridDimX = config->gridDimX,
        .gridDimY = config->gridDimY,
        .gridDimZ = config->gridDimZ,
        .blockDimX = config->blockDimX,
        .blockDimY = config->blockDimY,
        .blockDimZ = config->blockDimZ,
        .sharedMemBytes = config->sharedMemBytes,
        .hStream = stream->handle,
        .attributes = config->attrs,
        .attributes_size = config->numAttrs * (uint32_t)sizeof(CUlaunchAttribute),
        .params = params->bytes,
        .params_size = params->size,
    };
    CUresult result;

    stream_begin(stream);
    result = wire_cuLaunchKernelEx(&client->channel, &in);
    stream_end();
    return result;
}

static CUresult check_launch(const CUlaunchConfig *config, const struct function *function)
{
    CUresult result = check_attributes(config);

    if (result == CUDA_SUCCESS)
        result = launch_check(config, function->attributes,
                              function->module->context->device->record->attributes);
    if (result == CUDA_SUCCESS && cooperative(config))
        result = check_cooperative(config, function);
    return result;
}

static CUresult launch_packed(const CUlaunchConfig *config, const struct function *function,
                              void **values, struct stream *stream)
{
    struct params params;
    CUresult result;

    params.bytes = params.packed;
    params.size = function->params_size;
    if (params.size == 0)
        return send_launch(config, function, &params, stream);
    result = pack_each(function, values, params.packed);
    return result != CUDA_SUCCESS ? result : send_launch(config, function, &params, stream);
}

/* More than 4 KiB of parameters is legal and rare: those get a buffer of their own size. */
static CUresult launch_packed_large(const CUlaunchConfig *config, const struct function *function,
                                    void **values, struct stream *stream)
{
    _Alignas(8) unsigned char packed[PARAMS_MAX + 4];
    struct params params = {.bytes = packed, .size = function->params_size};
    CUresult result = pack_each(function, values, packed);

    return result != CUDA_SUCCESS ? result : send_launch(config, function, &params, stream);
}

static CUresult launch(const CUlaunchConfig *config, CUfunction f, void **values, void **extra)
{
    struct function *function;
    struct context *context;
    struct stream *stream;
    CUresult result = context_enter(&context);

    if (result == CUDA_SUCCESS)
        result = function_resolve(context, f, &function);
    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, config->hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = check_launch(config, function);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->device != function->module->context->device)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_takes_kernel(stream, config, f, values, extra, &result))
        return result;
    if (extra && !values) {
        struct params params;

        params.bytes = NULL;
        params.size = 0;
        result = take_extra(extra, function, &params);
        return result != CUDA_SUCCESS ? result : send_launch(config, function, &params, stream);
    }
    if (extra || (!values && function->param_count > 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (function->params_size <= sizeof(((struct params *)NULL)->packed))
        return launch_packed(config, function, values, stream);
    return launch_packed_large(config, function, values, stream);
}

CUresult client_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                 void **extra)
{
    return config ? launch(config, f, kernelParams, extra) : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuLaunchKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY,
                               unsigned gridDimZ, unsigned blockDimX, unsigned blockDimY,
                               unsigned blockDimZ, unsigned sharedMemBytes, CUstream hStream,
                               void **kernelParams, void **extra)
{
    CUlaunchConfig config = {
        .gridDimX = gridDimX,
        .gridDimY = gridDimY,
        .gridDimZ = gridDimZ,
        .blockDimX = blockDimX,
        .blockDimY = blockDimY,
        .blockDimZ = blockDimZ,
        .sharedMemBytes = sharedMemBytes,
        .hStream = hStream,
    };

    return launch(&config, f, kernelParams, extra);
}

CUresult client_cuLaunchCooperativeKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY,
                                          unsigned gridDimZ, unsigned blockDimX, unsigned blockDimY,
                                          unsigned blockDimZ, unsigned sharedMemBytes,
                                          CUstream hStream, void **kernelParams)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUlaunchConfig config = {
        .gridDimX = gridDimX,
        .gridDimY = gridDimY,
        .gridDimZ = gridDimZ,
        .blockDimX = blockDimX,
        .blockDimY = blockDimY,
        .blockDimZ = blockDimZ,
        .sharedMemBytes = sharedMemBytes,
        .hStream = hStream,
        .attrs = &attribute,
        .numAttrs = 1,
    };

    return launch(&config, f, kernelParams, NULL);
}
