/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. The client has laid the parameters out as the driver wants them, so they go through as
 * one buffer. Launch attributes are filtered one by one: a handle or an address of the client's
 * process means nothing here.
 */
#include <string.h>

#include "device_printf.h"
#include "function.h"
#include "launch.h"
#include "launch_batch.h"
#include "launch_record.h"
#include "launch_state.h"
#include "server_dispatch.h"

/* Whether an attribute is passed to the driver. Those that are neither passed nor hints are
 * refused, because the program relies on them. */
static bool attribute_passes(CUlaunchAttributeID id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

/* Hints: the launch means the same without them. */
static bool attribute_is_hint(const CUlaunchAttribute *attribute)
{
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return true;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return !attribute->value.deviceUpdatableKernelNode.deviceUpdatable;
    default:
        return false;
    }
}

static unsigned add_own(const struct function *function, CUlaunchAttribute *attributes,
                        unsigned count)
{
    CUlaunchAttribute own[FUNCTION_LAUNCH_ATTRIBUTES];
    unsigned own_count = function_launch_attributes(function, own), given = count;

    for (unsigned i = 0; i < own_count; i++) {
        unsigned j = 0;

        while (j < given && attributes[j].id != own[i].id)
            j++;
        if (j == given)
            attributes[count++] = own[i];
    }
    return count;
}

CUresult launch_filter_attributes(struct session *session, const char *call,
                                  const struct function *function, const void *bytes, uint32_t size,
                                  CUlaunchAttribute *ret_attributes, unsigned *ret_count)
{
    unsigned offered = size / sizeof(CUlaunchAttribute), count = 0;

    if (size % sizeof(CUlaunchAttribute) || offered > LAUNCH_ATTRIBUTES_OFFERED_MAX) {
        session_log_error(session, "%s: %u bytes are not an array of launch attributes", call,
                          size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < offered; i++) {
        CUlaunchAttribute *attribute = &ret_attributes[count];
        memcpy(attribute, (const CUlaunchAttribute *)bytes + i, sizeof(*attribute));
        if (attribute_passes(attribute->id)) {
            count++;
        } else if (!attribute_is_hint(attribute)) {
            session_log_error(session, "%s: launch attribute %d is not supported", call,
                              (int)attribute->id);
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    *ret_count = function->has_own_attributes ? add_own(function, ret_attributes, count) : count;
    return CUDA_SUCCESS;
}

bool launch_check_params(struct session *session, const char *call, uint32_t size,
                         const struct function *function)
{
    if (size >= function->params_size)
        return true;
    session_log_error(session, "%s: %s takes %u bytes of parameters, not %u", call, function->name,
                      function->params_size, size);
    return false;
}

CUresult launch_with(const struct launch *launch, const struct stream *stream,
                     CUlaunchAttribute *attributes, unsigned count)
{
    size_t params_size = launch->shape.params_size;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)launch->params,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &params_size, CU_LAUNCH_PARAM_END};
    CUlaunchConfig config = {
        .gridDimX = launch->shape.grid[0],
        .gridDimY = launch->shape.grid[1],
        .gridDimZ = launch->shape.grid[2],
        .blockDimX = launch->shape.block[0],
        .blockDimY = launch->shape.block[1],
        .blockDimZ = launch->shape.block[2],
        .sharedMemBytes = launch->shape.shared,
        .hStream = stream->driver,
        .attrs = attributes,
        .numAttrs = count,
    };

    function_prefer(launch->function);
    return driver.cuLaunchKernelEx(&config, launch->function->driver, NULL,
                                   params_size ? extra : NULL);
}

static void announce_function(struct session *session, const struct function *function)
{
    function_note_uses(session, function);
    if (function_may_print(function))
        device_printf_begin(session, function->module->device, function_formats(function));
}

CUresult launch_begin(struct session *session, struct stream *stream, const struct launch *launches,
                      unsigned count, uint32_t uses)
{
    stream_note_kernel(stream, launches[count - 1].shape.grid);
    CUresult result = stream_begin_work(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (uses & FUNCTION_MAY_PRINT)
        print_checkpoint_open(stream);
    for (unsigned i = 0; i < count && uses; i++)
        announce_function(session, launches[i].function);
    return CUDA_SUCCESS;
}

CUresult launch_plain(const struct launch *launch, const struct stream *stream)
{
    return launch_with(launch, stream, NULL, 0);
}

/* Launches by itself, after the launches that were set aside. */
static CUresult launch_now(struct session *session, const struct wire_cuLaunchKernelEx *in,
                           struct function *f, struct stream *hStream)
{
    launch_batch_flush(session);

    CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
    unsigned count = 0;
    struct launch launch;
    CUresult result = launch_check_params(session, "cuLaunchKernel", in->params_size, f)
                          ? CUDA_SUCCESS
                          : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS && (in->attributes_size || f->has_own_attributes))
        result = launch_filter_attributes(session, "cuLaunchKernel", f, in->attributes,
                                          in->attributes_size, attributes, &count);
    launch_read(&launch, in, f);
    launch_record(session, 1, in->f, f->name);
    if (result == CUDA_SUCCESS)
        result = launch_begin(session, hStream, &launch, 1, f->uses);
    if (result == CUDA_SUCCESS)
        result = launch_with(&launch, hStream, attributes, count);
    return stream_end_work(hStream, 0, result);
}

/* Whether a launch may be set aside: most launches have no attributes, and most functions have none
 * of their own. */
static bool is_plain(const struct session *session, const struct wire_cuLaunchKernelEx *in,
                     const struct function *function)
{
    return !session->server->launch->no_batching && !in->attributes_size &&
           !function->has_own_attributes && in->params_size >= function->params_size &&
           in->params_size <= LAUNCH_BATCH_PARAMS_MAX;
}

CUresult serve_cuLaunchKernelEx(struct session *session, const struct wire_cuLaunchKernelEx *in,
                                struct function *f, struct stream *hStream)
{
    if (!is_plain(session, in, f))
        return launch_now(session, in, f, hStream);
    launch_batch_add(session, in, f, hStream);
    return CUDA_SUCCESS;
}

CUresult serve_cuOccupancyMaxActiveClusters(struct session *session,
                                            const struct wire_cuOccupancyMaxActiveClusters *in,
                                            struct function *f, struct stream *hStream,
                                            struct wire_cuOccupancyMaxActiveClusters_reply *ret_out)
{
    CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
    CUlaunchConfig config = {
        in->gridDimX,  in->gridDimY,       in->gridDimZ,    in->blockDimX, in->blockDimY,
        in->blockDimZ, in->sharedMemBytes, hStream->driver, attributes,    0};
    CUresult result =
        launch_filter_attributes(session, "cuOccupancyMaxActiveClusters", f, in->attributes,
                                 in->attributes_size, attributes, &config.numAttrs);

    if (result == CUDA_SUCCESS && !driver.cuOccupancyMaxActiveClusters)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = session_enter(session, f->module->device);
    if (result == CUDA_SUCCESS)
        result = driver.cuOccupancyMaxActiveClusters(&ret_out->numClusters, f->driver, &config);
    return result;
}

CUresult serve_cuOccupancyMaxPotentialClusterSize(
    struct session *session, const struct wire_cuOccupancyMaxPotentialClusterSize *in,
    struct function *f, struct stream *hStream,
    struct wire_cuOccupancyMaxPotentialClusterSize_reply *ret_out)
{
    CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
    CUlaunchConfig config = {
        in->gridDimX,  in->gridDimY,       in->gridDimZ,    in->blockDimX, in->blockDimY,
        in->blockDimZ, in->sharedMemBytes, hStream->driver, attributes,    0};
    CUresult result =
        launch_filter_attributes(session, "cuOccupancyMaxPotentialClusterSize", f, in->attributes,
                                 in->attributes_size, attributes, &config.numAttrs);

    if (result == CUDA_SUCCESS && !driver.cuOccupancyMaxPotentialClusterSize)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = session_enter(session, f->module->device);
    if (result == CUDA_SUCCESS)
        result =
            driver.cuOccupancyMaxPotentialClusterSize(&ret_out->clusterSize, f->driver, &config);
    return result;
}
