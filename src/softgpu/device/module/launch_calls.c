/* SPDX-License-Identifier: Apache-2.0 */
/* See launch_calls.h. */
#include "launch_calls.h"

#include <string.h>

#include "cuda_launch_attributes.h"
#include "graph_condition.h"
#include "launch_abort.h"
#include "soft_context.h"
#include "soft_event.h"
#include "soft_module.h"
#include "soft_printf.h"
#include "soft_stream.h"
#include "stream_prepare.h"

#define PARAMS_LIMIT 32764u
#define ATTRIBUTES_MAX 64u
/* Operations that may be queued in a stream before a launch waits. They are fewer than the 1024 of
 * NVIDIA's driver, for kernels take longer here. A wait for the stream is one for all of them.
 */
#define QUEUE_LIMIT 64u

/* The memory that cooperative groups keep for each grid; they count arrivals in `barrier`. */
struct workspace {
    uint32_t size;
    uint32_t barrier;
};

struct launch {
    struct operation operation;
    struct sg_launch grid;
    struct owned_launch owned;
    struct workspace workspace __attribute__((aligned(16)));
    unsigned char params[];
};

/* One call of the API, whichever it was. */
struct launch_request {
    const void *function;
    unsigned grid[3], block[3];
    unsigned cluster[3]; /* zeros: as the kernel says */
    unsigned shared;
    CUstream stream;
    void **params;
    void **extra;
    const CUlaunchAttribute *attributes; /* as they were given */
    unsigned attribute_count;
    bool cooperative;
    bool has_priority;
    int priority;
};

static void launch_print(void *user, enum sg_print_kind kind, const struct sg_text *text)
{
    const struct launch *launch = user;

    print_keep(launch->operation.context->printer, kind, text);
}

static void launch_set_condition(void *user, uint64_t handle, uint32_t value)
{
    SOFT_LOCKED;
    (void)user;
    graph_condition_set_locked(handle, value);
}

/* After a fault nothing may synchronize any more. */
static void launch_done(void *user, CUresult result, const char *message)
{
    struct launch *launch = user;

    if (result)
        print_flush(launch->operation.context->printer);
    SOFT_LOCKED;
    launch->owned.engine = NULL;
    if (launch->grid.workspace)
        sg_space_remove(launch->grid.space, launch->grid.workspace);
    if (result)
        context_fail_locked(launch->operation.context, result, message);
    operation_finish_locked(&launch->operation);
}

static bool launch_start_locked(struct operation *operation)
{
    struct launch *launch = (struct launch *)operation;
    struct context *context = operation->context;
    CUresult result;

    if (launch->owned.aborted)
        return true;
    if (launch->grid.workspace)
        sg_space_add(launch->grid.space, launch->grid.workspace, sizeof(launch->workspace),
                     SG_READ | SG_WRITE);
    result = sg_engine_submit(context->device->engine, &launch->grid);
    if (result)
        context_fail_locked(context, result, "the grid could not be started");
    else
        launch->owned.engine = context->device->engine;
    return result != CUDA_SUCCESS;
}

static void launch_fini(struct operation *operation)
{
    owned_launch_remove_locked(&((struct launch *)operation)->owned);
}

static const struct operation_type launch_type = {.start_locked = launch_start_locked,
                                                  .fini = launch_fini};

static bool shape_is_possible(const struct launch_request *request)
{
    static const unsigned grid_limit[3] = {0x7fffffff, 65535, 65535};
    static const unsigned block_limit[3] = {1024, 1024, 64};

    for (int i = 0; i < 3; i++) {
        if (request->grid[i] == 0 || request->grid[i] > grid_limit[i])
            return false;
        if (request->block[i] == 0 || request->block[i] > block_limit[i])
            return false;
    }
    return request->block[0] * request->block[1] * request->block[2] <= SOFT_THREADS_PER_BLOCK;
}

/* Clusters of up to eight blocks can be launched anywhere; larger ones must be asked for. */
static CUresult check_cluster(const struct launch_request *request, const struct kernel *kernel)
{
    const int *fixed = kernel->cluster;
    unsigned limit = kernel->non_portable_cluster ? SG_MAX_CLUSTER : SOFT_CLUSTER_PORTABLE;
    uint64_t size = 1;

    if (!request->cluster[0])
        return CUDA_SUCCESS;
    if (fixed[0] && memcmp(fixed, request->cluster, sizeof(request->cluster)) != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++) {
        size *= request->cluster[i];
        if (size == 0 || size > limit || request->grid[i] % request->cluster[i])
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    return CUDA_SUCCESS;
}

static CUresult check_shape(const struct launch_request *request, const struct kernel *kernel)
{
    const struct sg_kernel_info *info = kernel->info;
    const unsigned *required = info->required_block;
    unsigned threads;

    if (!shape_is_possible(request))
        return CUDA_ERROR_INVALID_VALUE;
    threads = request->block[0] * request->block[1] * request->block[2];
    if (required[0] && memcmp(required, request->block, sizeof(request->block)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > info->max_threads_per_block)
        return CUDA_ERROR_INVALID_VALUE;
    if (request->shared > (unsigned)kernel->max_dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    return check_cluster(request, kernel);
}

static unsigned cluster_blocks(const struct launch_request *request)
{
    const unsigned *cluster = request->cluster;

    return cluster[0] ? cluster[0] * cluster[1] * cluster[2] : 1;
}

/* A block must fit on an SM, and a cluster on SMs that are scheduled together. A cooperative grid
 * must fit on all of them at once. */
static CUresult check_capacity(const struct launch_request *request, const struct kernel *kernel,
                               const struct stream *stream)
{
    unsigned threads = request->block[0] * request->block[1] * request->block[2];
    unsigned cluster = cluster_blocks(request);
    uint64_t fit = cluster * sg_cluster_occupancy(stream->context->device->engine, kernel->info,
                                                  threads, request->shared, cluster);
    unsigned sms = stream_sms_for_cluster(stream, cluster);
    uint64_t blocks;

    if (sms == 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (fit == 0)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (!request->cooperative)
        return CUDA_SUCCESS;
    if (__builtin_mul_overflow((uint64_t)request->grid[0] * request->grid[1], request->grid[2],
                               &blocks) ||
        blocks > fit * sms)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

static void fill_grid(struct launch *launch, const struct launch_request *request,
                      const struct kernel *kernel, const struct module *module,
                      const struct stream *stream)
{
    struct context *context = module->context;

    launch->grid = (struct sg_launch){
        .instance = module->instance,
        .kernel = kernel->index,
        .dynamic_shared = request->shared,
        .params = launch->params,
        .params_size = kernel->info->params_size,
        .priority = request->has_priority ? request->priority : stream->priority,
        .cooperative = request->cooperative,
        .stack_size = context->limits[CU_LIMIT_STACK_SIZE],
        .grid_id = ++context->next_grid,
        .space = context->space,
        .print = launch_print,
        .set_condition = launch_set_condition,
        .done = launch_done,
        .user = launch,
    };
    if (request->cooperative) {
        launch->workspace.size = sizeof(launch->workspace);
        launch->grid.workspace = (uintptr_t)&launch->workspace;
    }
    memcpy(launch->grid.sm_mask, stream->part.sms, sizeof(launch->grid.sm_mask));
    memcpy(launch->grid.grid, request->grid, sizeof(launch->grid.grid));
    memcpy(launch->grid.block, request->block, sizeof(launch->grid.block));
    memcpy(launch->grid.cluster, request->cluster, sizeof(launch->grid.cluster));
}

struct graph_kernel_info launch_params_of(const struct sg_kernel_info *info)
{
    return (struct graph_kernel_info){
        .params_size = info->params_size,
        .param_count = info->param_count,
        .layout = info->params,
    };
}

/* The kernel's own cluster, unless the launch names one. */
static void choose_cluster(struct launch_request *request, const struct kernel *kernel)
{
    if (!request->cluster[0])
        memcpy(request->cluster, kernel->cluster, sizeof(request->cluster));
}

/* The stream lends its priority and its multiprocessors; the context may be another one. */
static CUresult create_locked(struct launch_request *request, struct context *context,
                              const struct stream *stream, struct operation **ret_operation)
{
    struct kernel *kernel;
    struct module *module;
    struct launch *launch;
    CUresult result = kernel_resolve_locked(request->function, context, &kernel, &module);

    if (result)
        return result;
    choose_cluster(request, kernel);
    if ((result = check_shape(request, kernel)) ||
        (result = check_capacity(request, kernel, stream)))
        return result;
    if (kernel->info->params_size > PARAMS_LIMIT)
        return CUDA_ERROR_INVALID_VALUE;
    launch = operation_create(sizeof(*launch) + kernel->info->params_size, &launch_type);
    if (!launch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const struct graph_kernel_info params = launch_params_of(kernel->info);
    result = graph_pack_params(&params, request->params, request->extra, launch->params);
    if (result) {
        operation_unref_locked(&launch->operation);
        return result;
    }
    fill_grid(launch, request, kernel, module, stream);
    context_note_use_locked(module->context, kernel->info);
    owned_launch_add_locked(&launch->owned, kernel->info->name, launch);
    launch->grid.owner = owned_launch_heap(&launch->owned);
    *ret_operation = &launch->operation;
    return CUDA_SUCCESS;
}

static CUresult submit_locked(struct launch_request *request, struct stream *stream)
{
    struct operation *operation;
    CUresult result = create_locked(request, stream->context, stream, &operation);

    if (result)
        return result;
    schedule_enqueue_locked(stream, operation);
    operation_unref_locked(operation);
    return CUDA_SUCCESS;
}

/* The priority of the stream, unless the launch has its own, and all that the launch has. */
static unsigned gather_attributes(const struct launch_request *request, const struct stream *stream,
                                  CUlaunchAttribute *ret_attributes)
{
    unsigned count = 0;

    if (stream->priority)
        ret_attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                      .value.priority = stream->priority};
    if (request->cooperative)
        ret_attributes[count++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    for (unsigned i = 0; i < request->attribute_count; i++)
        ret_attributes[count++] = request->attributes[i];
    return count;
}

static CUresult capture_locked(const struct launch_request *request, struct stream *stream)
{
    const CUDA_KERNEL_NODE_PARAMS params = {
        .func = (CUfunction)request->function,
        .gridDimX = request->grid[0],
        .gridDimY = request->grid[1],
        .gridDimZ = request->grid[2],
        .blockDimX = request->block[0],
        .blockDimY = request->block[1],
        .blockDimZ = request->block[2],
        .sharedMemBytes = request->shared,
        .kernelParams = request->params,
        .extra = request->extra,
    };
    CUlaunchAttribute attributes[ATTRIBUTES_MAX + 2];
    unsigned count = gather_attributes(request, stream, attributes);

    return capture_kernel_locked(&stream->capture, &params, attributes, count);
}

/* As on hardware a full queue blocks the launching thread, which bounds the work in flight. */
CUresult launch_stream_locked(CUstream handle, struct stream **ret_stream)
{
    struct stream *stream;
    CUresult result = stream_work_locked(handle, &stream);

    while (!result && stream->queued >= QUEUE_LIMIT) {
        operation_wait_finished_locked(stream->first);
        result = stream_work_locked(handle, &stream);
    }
    if (!result)
        *ret_stream = stream;
    return result;
}

static CUresult submit_launch(struct launch_request *request)
{
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = launch_stream_locked(request->stream, &stream);

    if (!result && capture_is_on(&stream->capture))
        return capture_locked(request, stream);
    return result ? result : submit_locked(request, stream);
}

static void read_cluster(const CUlaunchAttributeValue *value, unsigned ret_cluster[3])
{
    ret_cluster[0] = value->clusterDim.x;
    ret_cluster[1] = value->clusterDim.y;
    ret_cluster[2] = value->clusterDim.z;
}

CUresult launch_prepare_locked(const struct graph_kernel *kernel, struct context *context,
                               const struct stream *stream, bool own_priority,
                               struct operation **ret_operation)
{
    const CUlaunchAttributeValue *priority =
        own_priority ? graph_kernel_attribute(kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY) : NULL;
    const CUlaunchAttributeValue *cooperative =
        graph_kernel_attribute(kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    const CUlaunchAttributeValue *cluster =
        graph_kernel_attribute(kernel, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    size_t size = kernel->buffer_size;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, kernel->buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &size, CU_LAUNCH_PARAM_END};
    struct launch_request request = {
        .function = graph_kernel_function(kernel),
        .shared = kernel->shared,
        .extra = extra,
        .cooperative = cooperative && cooperative->cooperative,
        .has_priority = priority,
        .priority = priority ? priority->priority : 0,
    };

    memcpy(request.grid, kernel->grid, sizeof(request.grid));
    memcpy(request.block, kernel->block, sizeof(request.block));
    if (cluster)
        read_cluster(cluster, request.cluster);
    return create_locked(&request, context, stream, ret_operation);
}

CUresult soft_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                             unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                             unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                             void **kernelParams, void **extra)
{
    struct launch_request request = {
        .function = f,
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .shared = sharedMemBytes,
        .stream = hStream,
        .params = kernelParams,
        .extra = extra,
    };

    return submit_launch(&request);
}

CUresult soft_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX,
                                        unsigned int blockDimY, unsigned int blockDimZ,
                                        unsigned int sharedMemBytes, CUstream hStream,
                                        void **kernelParams)
{
    struct launch_request request = {
        .function = f,
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .shared = sharedMemBytes,
        .stream = hStream,
        .params = kernelParams,
        .cooperative = true,
    };

    return submit_launch(&request);
}

static bool captures(CUstream handle)
{
    struct stream *stream;
    SOFT_LOCKED;

    return !stream_find_locked(handle, &stream) && capture_is_on(&stream->capture);
}

static CUresult check_attribute(const CUlaunchAttribute *attribute, CUstream stream)
{
    CUresult result = cuda_launch_attribute_check(attribute, captures(stream));
    CUevent event;

    if (!result && cuda_launch_attribute_event(attribute, &event))
        result = event_check_of_launch(event);
    return result;
}

/* Attributes that only tune a launch change nothing. */
static void read_attribute(const CUlaunchAttribute *attribute, struct launch_request *request)
{
    const CUlaunchAttributeValue *value = &attribute->value;

    if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        request->cooperative = value->cooperative != 0;
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        read_cluster(value, request->cluster);
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        request->has_priority = true;
        request->priority = value->priority;
    }
}

static CUresult record_events(const CUlaunchConfig *config)
{
    CUresult result = CUDA_SUCCESS;
    CUevent event;

    for (unsigned i = 0; !result && i < config->numAttrs; i++)
        if (cuda_launch_attribute_event(&config->attrs[i], &event))
            result = event_record_of_launch(event, config->hStream,
                                            cuda_launch_attribute_edge(&config->attrs[i]));
    return result;
}

CUresult soft_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                               void **extra)
{
    CUresult result = CUDA_SUCCESS;

    if ((config->numAttrs && !config->attrs) || config->numAttrs > ATTRIBUTES_MAX)
        return CUDA_ERROR_INVALID_VALUE;

    struct launch_request request = {
        .function = f,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared = config->sharedMemBytes,
        .stream = config->hStream,
        .params = kernelParams,
        .extra = extra,
        .attributes = config->attrs,
        .attribute_count = config->numAttrs,
    };

    for (unsigned i = 0; !result && i < config->numAttrs; i++) {
        result = check_attribute(&config->attrs[i], config->hStream);
        read_attribute(&config->attrs[i], &request);
    }
    if (!result)
        result = submit_launch(&request);
    return result ? result : record_events(config);
}
