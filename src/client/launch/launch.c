/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. The client refuses invalid launches at once, as CUDA does, by the cached attributes.
 * The rest goes into the ring, and the call returns.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_event.h"
#include "client_library.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_launch_attributes.h"
#include "launch_check.h"
#include "managed_hooks.h"
#include "occupancy.h"
#include "stream_commands.h"
#include "wire_calls.h"

#define PARAMS_MAX 32764
#define ATTRIBUTES_MAX 64

/* For what is on the way of every launch. launch() is compiled for launches with attributes and for
 * those without. */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

static_assert(offsetof(CUlaunchConfig, sharedMemBytes) == offsetof(CUlaunchConfig, gridDimX) + 24,
              "the shape of a launch lies together");

/* The parameters of a launch: a pointer to each value, or one buffer that is packed already. */
struct params {
    void **values; /* NULL: they are packed, or there are none */
    const void *packed;
    size_t packed_size;
};

/* Usually one word, which is copied in less time than a call of memcpy() takes. */
static void copy_value(unsigned char *into, const void *value, uint32_t size)
{
    if (size == 8)
        memcpy(into, value, 8);
    else if (size == 4)
        memcpy(into, value, 4);
    else
        memcpy(into, value, size);
}

/* Gaps are zeroed, so that equal launches are equal bytes. */
ALWAYS_INLINE CUresult pack(const struct function *function, void **values, unsigned char *into)
{
    const uint32_t *layout = function->layout;

    if (function->has_gaps)
        memset(into, 0, function->params_size);
    for (uint32_t i = 0; i < function->param_count; i++, layout += 2) {
        if (!values[i])
            return CUDA_ERROR_INVALID_VALUE;
        copy_value(into + layout[0], values[i], layout[1]);
    }
    return CUDA_SUCCESS;
}

ALWAYS_INLINE CUresult put_params(const struct function *function, const struct params *params,
                                  void *into)
{
    if (params->values)
        return pack(function, params->values, into);
    if (function->params_size == 0)
        return CUDA_SUCCESS;
    memcpy(into, params->packed, params->packed_size);
    memset((unsigned char *)into + params->packed_size, 0,
           function->params_size - params->packed_size);
    return CUDA_SUCCESS;
}

/* The other way to pass parameters: one buffer that the program has packed itself. It may end
 * before the last parameter does: NCCL's kernels take 4 KiB, of which a launch gives what it uses.
 */
static CUresult take_extra(void **extra, const struct function *function, struct params *ret_params)
{
    const void *packed = NULL;
    const size_t *size = NULL;

    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            packed = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (function->params_size == 0)
        return CUDA_SUCCESS;
    if (!packed || !size || *size > PARAMS_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    ret_params->packed = packed;
    ret_params->packed_size = *size < function->params_size ? *size : function->params_size;
    return CUDA_SUCCESS;
}

static CUresult take_params(void **values, void **extra, const struct function *function,
                            struct params *ret_params)
{
    *ret_params = (struct params){.values = values};
    if (extra)
        return values ? CUDA_ERROR_INVALID_VALUE : take_extra(extra, function, ret_params);
    return values || function->param_count == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* It is recorded behind the kernel, which CUDA allows: these events come no sooner than asked for,
 * and at the latest when the kernel ends. */
static CUevent event_of(const CUlaunchAttribute *attribute)
{
    CUevent event = NULL;

    cuda_launch_attribute_event(attribute, &event);
    return event;
}

static bool is_event_attribute(const CUlaunchAttribute *attribute)
{
    CUevent event;

    return cuda_launch_attribute_event(attribute, &event);
}

static bool has_events(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (is_event_attribute(&config->attrs[i]))
            return true;
    return false;
}

static CUresult check_attribute(const CUlaunchAttribute *attribute, bool captured)
{
    CUresult result = cuda_launch_attribute_check(attribute, captured);

    if (result != CUDA_SUCCESS || !is_event_attribute(attribute))
        return result;
    if (!event_exists(event_of(attribute)))
        return CUDA_ERROR_INVALID_HANDLE;
    return event_keeps_time(event_of(attribute)) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult check_attributes(const CUlaunchConfig *config, const struct stream *stream)
{
    CUresult result = CUDA_SUCCESS;

    if (config->numAttrs > ATTRIBUTES_MAX || (config->numAttrs > 0 && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++)
        result = check_attribute(&config->attrs[i], stream_captures(stream));
    return result;
}

static bool cooperative(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            return config->attrs[i].value.cooperative != 0;
    return false;
}

/* All blocks of a cooperative grid must fit at once; only the driver knows how many do. */
static CUresult check_cooperative(const CUlaunchConfig *config, struct function *function)
{
    const struct occupancy_question question = {
        .block_size = (int)(config->blockDimX * config->blockDimY * config->blockDimZ),
        .shared = config->sharedMemBytes,
    };
    const struct device *device = function->module->context->device;
    int blocks;
    CUresult result = occupancy_blocks(function, &question, &blocks);
    uint64_t resident;

    if (result != CUDA_SUCCESS)
        return result;
    resident = (uint64_t)blocks *
               (uint64_t)device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ > resident
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

ALWAYS_INLINE CUresult check_launch(const CUlaunchConfig *config, struct function *function,
                                    const struct device *device, const struct stream *stream)
{
    CUresult result = config->numAttrs ? check_attributes(config, stream) : CUDA_SUCCESS;

    if (result == CUDA_SUCCESS)
        result = launch_check(config, function->attributes, device->record->attributes);
    if (result == CUDA_SUCCESS && config->numAttrs && cooperative(config))
        result = check_cooperative(config, function);
    return result;
}

/* The parameters are packed in the ring. */
static CUresult send_launch(const CUlaunchConfig *config, const struct function *function,
                            const struct params *params, struct stream *stream)
{
    struct wire_cuLaunchKernelEx in;
    void *place;
    CUresult result;

    in.f = function->handle;
    in.hStream = stream->handle;
    memcpy(in.shape, &config->gridDimX, sizeof(in.shape)); /* they lie there in this order */
    in.attributes = config->attrs;
    in.attributes_size = config->numAttrs * (uint32_t)sizeof(CUlaunchAttribute);
    in.params_size = function->params_size;
    stream_begin(stream);
    managed_work();
    managed_given(stream, params->packed, params->packed_size);
    result = wire_cuLaunchKernelEx(&client->channel, &in, &place);
    if (result == CUDA_SUCCESS)
        result = put_params(function, params, place);
    if (result == CUDA_SUCCESS)
        channel_commit(&client->channel);
    stream_end();
    return result;
}

/* The launch without its events; `attributes` has space for ATTRIBUTES_MAX. */
static CUlaunchConfig without_events(const CUlaunchConfig *config, CUlaunchAttribute *attributes)
{
    CUlaunchConfig plain = *config;

    plain.attrs = attributes;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        attributes[i] = config->attrs[i];
        if (is_event_attribute(&attributes[i]))
            attributes[i].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    }
    return plain;
}

/* Handles of the program's process mean nothing to the server, which does not know of events. */
static CUresult launch_with_events(const CUlaunchConfig *config, const struct function *function,
                                   const struct params *params, struct stream *stream)
{
    CUlaunchAttribute attributes[ATTRIBUTES_MAX];
    CUlaunchConfig plain = without_events(config, attributes);
    CUresult result;

    result = send_launch(&plain, function, params, stream);
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++)
        if (is_event_attribute(&config->attrs[i]))
            result = event_record_on(event_of(&config->attrs[i]), stream);
    return result;
}

ALWAYS_INLINE CUresult launch_now(const CUlaunchConfig *config, const struct function *function,
                                  const struct params *params, struct stream *stream)
{
    return config->numAttrs && has_events(config)
               ? launch_with_events(config, function, params, stream)
               : send_launch(config, function, params, stream);
}

/* The parameters may be in managed memory, which cannot be read any more once the launch has begun.
 */
static __attribute__((noinline)) CUresult launch_beside_managed(const CUlaunchConfig *config,
                                                                const struct function *function,
                                                                const struct params *params,
                                                                struct stream *stream)
{
    _cleanup_free_ void *packed = malloc((size_t)function->params_size + 1);
    const struct params own = {.packed = packed, .packed_size = function->params_size};
    CUresult result = packed ? put_params(function, params, packed) : CUDA_ERROR_OUT_OF_MEMORY;

    if (result != CUDA_SUCCESS)
        return result;
    managed_launch(packed, function->params_size);
    return launch_now(config, function, &own, stream);
}

/* An event of a captured launch is a port of its node. */
static bool capture_takes(struct stream *stream, const CUlaunchConfig *config, CUfunction f,
                          void **values, void **extra, CUresult *ret_result)
{
    CUlaunchAttribute attributes[ATTRIBUTES_MAX];

    if (!has_events(config) || !stream_captures(stream))
        return capture_takes_kernel(stream, config, f, values, extra, ret_result);
    const CUlaunchConfig plain = without_events(config, attributes);
    if (!capture_takes_kernel(stream, &plain, f, values, extra, ret_result))
        return false;
    for (unsigned i = 0; i < config->numAttrs && *ret_result == CUDA_SUCCESS; i++)
        if (is_event_attribute(&config->attrs[i]))
            *ret_result = event_record_captured(event_of(&config->attrs[i]), stream,
                                                cuda_launch_attribute_edge(&config->attrs[i]));
    return true;
}

ALWAYS_INLINE CUresult launch(const CUlaunchConfig *config, CUfunction f, void **values,
                              void **extra)
{
    const struct device *device;
    struct function *function;
    struct context *context;
    struct stream *stream;
    struct params params;
    CUresult result = stream_enter_context(config->hStream, &context);

    if (result == CUDA_SUCCESS)
        result = function_resolve(context, f, &function);
    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, config->hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    device = function->module->context->device;
    result = check_launch(config, function, device, stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->device != device)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!stream_is_plain(stream) && capture_takes(stream, config, f, values, extra, &result))
        return result;
    result = take_params(values, extra, function, &params);
    if (result != CUDA_SUCCESS)
        return result;
    return managed_any() ? launch_beside_managed(config, function, &params, stream)
                         : launch_now(config, function, &params, stream);
}

CUresult client_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                 void **extra)
{
    return launch(config, f, kernelParams, extra);
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

    return client_cuLaunchKernelEx(&config, f, kernelParams, NULL);
}
