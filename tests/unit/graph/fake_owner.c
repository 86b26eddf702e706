/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_owner.h"

#include "cleanup.h"
#include "graph_memory.h"
#include "unit.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

unsigned fake_execs, fake_sets, fake_memory;
CUresult fake_set_result;
static struct {
    CUhostFn function;
    void *user;
} fake_later[8];
static unsigned fake_later_count;
CUcontext fake_current = FAKE_CONTEXT;

static CUresult context(CUcontext given, CUcontext *ret_context)
{
    *ret_context = given ? given : fake_current;
    return CUDA_SUCCESS;
}

static CUresult kernel(const void *function, CUcontext in, struct graph_kernel_info *ret_info)
{
    bool is_library_kernel = function == FAKE_LIBRARY_KERNEL || function == FAKE_LIBRARY_FUNCTION;

    if (function != FAKE_KERNEL && !is_library_kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_info =
        (struct graph_kernel_info){.params_size = 16,
                                   .param_count = 2,
                                   .func = is_library_kernel ? FAKE_LIBRARY_FUNCTION : FAKE_KERNEL,
                                   .kern = is_library_kernel ? FAKE_LIBRARY_KERNEL : NULL};
    return CUDA_SUCCESS;
}

static void param(const struct graph_kernel_info *info, unsigned index, size_t *ret_offset,
                  size_t *ret_size)
{
    *ret_offset = index ? 8 : 0;
    *ret_size = index ? sizeof(double) : sizeof(int);
}

static CUresult check(const struct graph_work *work)
{
    bool has_event = work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;

    return has_event && work->event == BAD_EVENT ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static CUresult exec_create(struct graph_exec *exec)
{
    fake_execs++;
    return CUDA_SUCCESS;
}

static void exec_destroy(struct graph_exec *exec)
{
    fake_execs--;
}

static CUresult exec_set(struct graph_exec *exec, struct graph_node *node)
{
    fake_sets++;
    return fake_set_result;
}

/* Addresses are never used again. */
static CUresult memory_take(CUcontext context, struct graph_memory *memory)
{
    static uint64_t next = 0x100000;

    memory->address = next;
    next += 0x10000;
    fake_memory++;
    return CUDA_SUCCESS;
}

static void memory_give(struct graph_memory *memory)
{
    fake_memory--;
}

static bool device_exists(CUdevice device)
{
    return device == 0;
}

static CUresult stream(CUstream handle, struct capture_stream **ret_stream)
{
    *ret_stream = (struct capture_stream *)handle;
    return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void later(const struct graph_exec *after, CUhostFn function, void *user)
{
    assert_true(fake_later_count < 8);
    fake_later[fake_later_count].function = function;
    fake_later[fake_later_count++].user = user;
}

void fake_run_later(void)
{
    for (unsigned i = 0; i < fake_later_count; i++)
        fake_later[i].function(fake_later[i].user);
    fake_later_count = 0;
}

const struct graph_backend graph_backend = {
    .lock = &lock,
    .hold = mutex_hold,
    .context_locked = context,
    .kernel_locked = kernel,
    .param_locked = param,
    .check_locked = check,
    .exec_create_locked = exec_create,
    .exec_destroy_locked = exec_destroy,
    .exec_set_locked = exec_set,
    .memory_take_locked = memory_take,
    .memory_give_locked = memory_give,
    .device_exists = device_exists,
    .later_locked = later,
    .stream_locked = stream,
};

CUgraph new_graph(void)
{
    CUgraph graph;

    assert_int_equal(graph_cuGraphCreate(&graph, 0), 0);
    return graph;
}

CUgraphNode add_empty(CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    CUgraphNode node;

    assert_int_equal(graph_cuGraphAddEmptyNode(&node, graph, dependencies, count), 0);
    return node;
}

CUgraphNode add_kernel(CUgraph graph, int number, double real)
{
    void *params[] = {&number, &real};
    const CUDA_KERNEL_NODE_PARAMS launch = {.func = FAKE_KERNEL,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 32,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = params};
    CUgraphNode node;

    assert_int_equal(graph_cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &launch), 0);
    return node;
}

int number_of(CUgraphNode node)
{
    CUDA_KERNEL_NODE_PARAMS params;

    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    return *(int *)(params.extra ? params.extra[1] : params.kernelParams[0]);
}

CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec;

    assert_int_equal(graph_cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    return exec;
}

struct graph_node *clone_in(CUgraphExec exec, CUgraphNode original)
{
    return map_get(&graph_exec_get(exec)->clones, (uintptr_t)original);
}
