/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake driver and the fixture that uses it.
 */
#include "fake_driver.h"

#include "accounting.h"
#include "array.h"
#include "capacity.h"
#include "channel_server.h"
#include "copy.h"
#include "cuda_graph.h"
#include "device_printf.h"
#include "graph.h"
#include "ipc_share.h"
#include "launch.h"
#include "memory_state.h"
#include "page_lock.h"
#include "server_life.h"
#include "server_module.h"
#include "server_parts.h"
#include "session_life.h"
#include "shm.h"
#include "sm_share.h"
#include "stream_state.h"
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE_LIBRARIES 4096

struct fake fake;

static char traced[sizeof(fake.trace)];

static CUresult trace(const char *format, ...)
{
    size_t used = strlen(fake.trace);
    CUresult result = fake.refusal;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(fake.trace + used, sizeof(fake.trace) - used, format, arguments);
    va_end(arguments);
    fake.refusal = CUDA_SUCCESS;
    return result;
}

const char *fake_trace(void)
{
    strcpy(traced, fake.trace);
    fake.trace[0] = '\0';
    return traced;
}

static unsigned number(const void *handle)
{
    return (unsigned)(uintptr_t)handle;
}

static CUresult fake_cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

static CUresult fake_cuGetErrorName(CUresult result, const char **ret_name)
{
    (void)result;
    *ret_name = "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamCreateWithPriority(CUstream *ret_stream, unsigned flags, int priority)
{
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    CUresult result = trace("stream s%u %d; ", fake.streams + 1, priority);
    if (result == CUDA_SUCCESS)
        *ret_stream = (CUstream)(uintptr_t)++fake.streams;
    return result;
}

static CUresult fake_cuStreamDestroy(CUstream stream)
{
    return trace("destroy s%u; ", number(stream));
}

static CUresult fake_cuStreamQuery(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventCreate(CUevent *ret_event, unsigned flags)
{
    (void)flags;
    CUresult result = trace("event e%u; ", fake.events + 1);
    if (result == CUDA_SUCCESS)
        *ret_event = (CUevent)(uintptr_t)++fake.events;
    return result;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    return trace("destroy e%u; ", number(event));
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    return trace("record e%u s%u; ", number(event), number(stream));
}

static CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    return trace("wait s%u e%u; ", number(stream), number(event));
}

static CUresult fake_cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                          unsigned flags)
{
    (void)flags;
    *(uint32_t *)(uintptr_t)address = value;
    return trace("write s%u %u; ", number(stream), value);
}

static CUresult fake_cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                         unsigned flags)
{
    (void)address;
    (void)flags;
    return trace("wait s%u %u; ", number(stream), value);
}

static CUresult fake_cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
    memcpy(dst, (const void *)(uintptr_t)src, size);
    return trace("down s%u %zu; ", number(stream), size);
}

static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                      void **params, void **extra)
{
    (void)params;
    return trace("launch s%u f%u %u %zu; ", number(config->hStream), number(function),
                 config->numAttrs, extra ? *(size_t *)extra[3] : 0);
}

/* The driver reads code where it is until the library is unloaded. */
static struct {
    const void *code;
    uint32_t first;
} loaded[FAKE_LIBRARIES];

static CUresult fake_cuLibraryLoadData(CUlibrary *ret_library, const void *image,
                                       CUjit_option *options, void **values, unsigned count,
                                       CUlibraryOption *library_options, void **library_values,
                                       unsigned library_count)
{
    unsigned at = fake.libraries % FAKE_LIBRARIES;

    (void)options, (void)values, (void)count;
    assert_int_equal(library_count, 1);
    assert_int_equal(*library_options, CU_LIBRARY_BINARY_IS_PRESERVED);
    assert_non_null(*library_values);
    CUresult result = trace("load l%u; ", fake.libraries + 1);
    if (result != CUDA_SUCCESS)
        return result;
    *ret_library = (CUlibrary)(uintptr_t)++fake.libraries;
    loaded[at].code = image;
    memcpy(&loaded[at].first, image, sizeof(loaded[at].first));
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryGetModule(CUmodule *ret_module, CUlibrary library)
{
    *ret_module = (CUmodule)library;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryGetKernelCount(unsigned *ret_count, CUlibrary library)
{
    (void)library;
    *ret_count = 0;
    return CUDA_SUCCESS;
}

/* Names are numbers: the kernel of that number, if the library has it. */
static CUresult fake_cuLibraryGetKernel(CUkernel *ret_kernel, CUlibrary library, const char *name)
{
    unsigned long index = strtoul(name, NULL, 10);

    (void)library;
    if (!index)
        return CUDA_ERROR_NOT_FOUND;
    *ret_kernel = (CUkernel)(uintptr_t)index;
    return trace("kernel k%s; ", name);
}

static CUresult fake_cuKernelGetFunction(CUfunction *ret_function, CUkernel kernel)
{
    *ret_function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

/* Each has one parameter. */
static CUresult fake_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *ret_offset,
                                        size_t *ret_size)
{
    (void)function;
    *ret_offset = 0;
    *ret_size = 8;
    return index ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fake_cuLibraryUnload(CUlibrary library)
{
    unsigned at = (number(library) - 1) % FAKE_LIBRARIES;

    assert_memory_equal(loaded[at].code, &loaded[at].first, sizeof(loaded[at].first));
    return trace("unload l%u; ", number(library));
}

/* Functions of the same number are the same for all clients. */
static CUresult fake_cuFuncGetAttribute(int *ret_value, CUfunction_attribute attribute,
                                        CUfunction function)
{
    (void)function;
    *ret_value = fake.attributes[attribute];
    return CUDA_SUCCESS;
}

static CUresult fake_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                        int value)
{
    fake.attributes[attribute] = value;
    return trace("attribute f%u %u %d; ", number(function), (unsigned)attribute, value);
}

static CUresult fake_cuGraphCreate(CUgraph *ret_graph, unsigned flags)
{
    (void)flags;
    CUresult result = trace("graph; ");
    if (result == CUDA_SUCCESS)
        *ret_graph = (CUgraph)(uintptr_t)1;
    return result;
}

static CUresult fake_cuGraphDestroy(CUgraph graph)
{
    (void)graph;
    return trace("destroy graph; ");
}

/* Nodes show their first parameter. */
/* 0 for a kernel without parameters. */
static unsigned first_param(const CUDA_KERNEL_NODE_PARAMS *params)
{
    return params->extra ? *(const unsigned *)params->extra[1] : 0;
}

static CUresult fake_cuGraphAddKernelNode(CUgraphNode *ret_node, CUgraph graph,
                                          const CUgraphNode *dependencies, size_t count,
                                          const CUDA_KERNEL_NODE_PARAMS *params)
{
    (void)graph;
    assert_true((count > 0) == (dependencies != NULL));
    *ret_node = (CUgraphNode)(uintptr_t)1;
    return trace("node f%u %u; ", number(params->func), first_param(params));
}

static CUresult fake_cuGraphAddMemcpyNode(CUgraphNode *ret_node, CUgraph graph,
                                          const CUgraphNode *dependencies, size_t count,
                                          const CUDA_MEMCPY3D *copy, CUcontext context)
{
    (void)dependencies, (void)context;
    *ret_node = (CUgraphNode)(uintptr_t)2;
    if (number(graph) >= 20)
        trace("in %u: ", number(graph));
    return trace("copy node %zu behind %zu; ", copy->WidthInBytes, count);
}

static CUresult fake_cuGraphAddMemsetNode(CUgraphNode *ret_node, CUgraph graph,
                                          const CUgraphNode *dependencies, size_t count,
                                          const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    (void)graph, (void)dependencies, (void)context;
    *ret_node = (CUgraphNode)(uintptr_t)3;
    return trace("fill node %zu behind %zu; ", fill->width, count);
}

static CUresult fake_cuGraphAddEmptyNode(CUgraphNode *ret_node, CUgraph graph,
                                         const CUgraphNode *dependencies, size_t count)
{
    (void)graph, (void)dependencies;
    *ret_node = (CUgraphNode)(uintptr_t)4;
    return trace("empty node behind %zu; ", count);
}

/* Handles are 0x1000 and the default value. */
static CUresult fake_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *ret_handle,
                                                    CUgraph graph, CUcontext context,
                                                    unsigned value, unsigned flags)
{
    (void)context;
    *ret_handle = 0x1000 + value;
    return trace("condition of graph %u flags %u; ", number(graph), flags);
}

/* Conditional nodes; the graphs inside are numbered from 20 on. */
static CUresult fake_cuGraphAddNode(CUgraphNode *ret_node, CUgraph graph,
                                    const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                                    size_t count, CUgraphNodeParams *params)
{
    static CUgraph bodies[] = {(CUgraph)20, (CUgraph)21};

    (void)graph, (void)dependencies, (void)data;
    assert_int_equal(params->type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    assert_true(params->conditional.size <= 2);
    params->conditional.phGraph_out = bodies;
    *ret_node = (CUgraphNode)(uintptr_t)5;
    return trace("conditional %#llx of %u behind %zu; ",
                 (unsigned long long)params->conditional.handle, params->conditional.size, count);
}

static CUresult fake_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_MEMCPY3D *copy, CUcontext context)
{
    (void)context;
    return trace("set x%u n%u %zu; ", number(exec), number(node), copy->WidthInBytes);
}

static CUresult fake_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_MEMSET_NODE_PARAMS *fill,
                                                    CUcontext context)
{
    (void)context;
    return trace("set x%u n%u %zu; ", number(exec), number(node), fill->width);
}

static CUresult fake_cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                                   const CUkernelNodeAttrValue *value)
{
    (void)node;
    return trace("attribute %u %d; ", (unsigned)id, value->priority);
}

static CUresult fake_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
    return trace("enable x%u n%u %u; ", number(exec), number(node), enabled);
}

static CUresult fake_cuGraphInstantiate(CUgraphExec *ret_exec, CUgraph graph,
                                        unsigned long long flags)
{
    (void)graph;
    (void)flags;
    *ret_exec = (CUgraphExec)(uintptr_t)++fake.execs;
    return trace("instantiate x%u; ", fake.execs);
}

static CUresult fake_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_KERNEL_NODE_PARAMS *params)
{
    (void)node;
    return trace("set x%u f%u %u; ", number(exec), number(params->func), first_param(params));
}

static CUresult fake_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    return trace("graph s%u x%u; ", number(stream), number(exec));
}

static CUresult fake_cuGraphExecDestroy(CUgraphExec exec)
{
    return trace("destroy x%u; ", number(exec));
}

static CUresult fake_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    (void)dst;
    (void)src;
    return trace("copy s%u %zu; ", number(stream), size);
}

static CUresult fake_cuMemcpy3DAsync(const CUDA_MEMCPY3D *box, CUstream stream)
{
    return trace("box s%u %zux%zux%zu; ", number(stream), box->WidthInBytes, box->Height,
                 box->Depth);
}

static CUresult fake_cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count,
                                      CUstream stream)
{
    (void)dst;
    return trace("fill s%u %u %zu; ", number(stream), value, count);
}

static CUresult fake_cuMemCreate(CUmemGenericAllocationHandle *ret_handle, size_t size,
                                 const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)flags;
    fake.made = *prop;
    CUresult result = trace("create %zu; ", size);
    if (result == CUDA_SUCCESS)
        *ret_handle = ++fake.granules;
    return result;
}

static CUresult fake_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return trace("release g%llu; ", handle);
}

static CUresult fake_cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                              CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    (void)address;
    (void)size;
    (void)offset;
    (void)flags;
    return trace("map g%llu; ", handle);
}

static CUresult fake_cuMemUnmap(CUdeviceptr address, size_t size)
{
    (void)address;
    return trace("unmap %zu; ", size);
}

static CUresult fake_cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                                    size_t count)
{
    (void)address;
    (void)size;
    (void)access;
    (void)count;
    return trace("access; ");
}

static CUresult fake_cuMemExportToShareableHandle(void *ret_fd, CUmemGenericAllocationHandle handle,
                                                  CUmemAllocationHandleType type,
                                                  unsigned long long flags)
{
    (void)handle;
    (void)type;
    (void)flags;
    *(int *)ret_fd = dup(0);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemGetHandleForAddressRange(void *ret_fd, CUdeviceptr address, size_t size,
                                                   CUmemRangeHandleType type,
                                                   unsigned long long flags)
{
    (void)address;
    CUresult result = trace("range %zu type %d flags %llu; ", size, (int)type, flags);
    if (result == CUDA_SUCCESS)
        *(int *)ret_fd = dup(0);
    return result;
}

static CUresult fake_cuMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    *ret_free = fake.free_bytes;
    *ret_total = 1u << 30;
    return CUDA_SUCCESS;
}

void fake_gives_nodes_priorities(void)
{
    driver.cuGraphKernelNodeSetAttribute = fake_cuGraphKernelNodeSetAttribute;
}

static void fill_table(void)
{
    driver = (struct driver_table){
        .cuCtxSetCurrent = fake_cuCtxSetCurrent,
        .cuGetErrorName = fake_cuGetErrorName,
        .cuStreamCreateWithPriority = fake_cuStreamCreateWithPriority,
        .cuStreamDestroy_v2 = fake_cuStreamDestroy,
        .cuStreamQuery = fake_cuStreamQuery,
        .cuEventCreate = fake_cuEventCreate,
        .cuEventDestroy_v2 = fake_cuEventDestroy,
        .cuEventRecord = fake_cuEventRecord,
        .cuStreamWaitEvent = fake_cuStreamWaitEvent,
        .cuStreamWriteValue32_v2 = fake_cuStreamWriteValue32,
        .cuMemcpyDtoHAsync_v2 = fake_cuMemcpyDtoHAsync,
        .cuStreamWaitValue32_v2 = fake_cuStreamWaitValue32,
        .cuLaunchKernelEx = fake_cuLaunchKernelEx,
        .cuLibraryLoadData = fake_cuLibraryLoadData,
        .cuLibraryGetKernel = fake_cuLibraryGetKernel,
        .cuLibraryGetKernelCount = fake_cuLibraryGetKernelCount,
        .cuLibraryGetModule = fake_cuLibraryGetModule,
        .cuLibraryUnload = fake_cuLibraryUnload,
        .cuKernelGetFunction = fake_cuKernelGetFunction,
        .cuFuncGetParamInfo = fake_cuFuncGetParamInfo,
        .cuFuncGetAttribute = fake_cuFuncGetAttribute,
        .cuFuncSetAttribute = fake_cuFuncSetAttribute,
        .cuGraphCreate = fake_cuGraphCreate,
        .cuGraphDestroy = fake_cuGraphDestroy,
        .cuGraphAddKernelNode_v2 = fake_cuGraphAddKernelNode,
        .cuGraphInstantiateWithFlags = fake_cuGraphInstantiate,
        .cuGraphExecKernelNodeSetParams_v2 = fake_cuGraphExecKernelNodeSetParams,
        .cuGraphLaunch = fake_cuGraphLaunch,
        .cuGraphExecDestroy = fake_cuGraphExecDestroy,
        .cuGraphAddMemcpyNode = fake_cuGraphAddMemcpyNode,
        .cuGraphAddMemsetNode = fake_cuGraphAddMemsetNode,
        .cuGraphAddEmptyNode = fake_cuGraphAddEmptyNode,
        .cuGraphAddNode_v2 = fake_cuGraphAddNode,
        .cuGraphConditionalHandleCreate = fake_cuGraphConditionalHandleCreate,
        .cuGraphExecMemcpyNodeSetParams = fake_cuGraphExecMemcpyNodeSetParams,
        .cuGraphExecMemsetNodeSetParams = fake_cuGraphExecMemsetNodeSetParams,
        .cuGraphNodeSetEnabled = fake_cuGraphNodeSetEnabled,
        .cuMemcpyAsync = fake_cuMemcpyAsync,
        .cuMemcpy3DAsync_v2 = fake_cuMemcpy3DAsync,
        .cuMemsetD32Async = fake_cuMemsetD32Async,
        .cuMemCreate = fake_cuMemCreate,
        .cuMemRelease = fake_cuMemRelease,
        .cuMemMap = fake_cuMemMap,
        .cuMemUnmap = fake_cuMemUnmap,
        .cuMemSetAccess = fake_cuMemSetAccess,
        .cuMemExportToShareableHandle = fake_cuMemExportToShareableHandle,
        .cuMemGetHandleForAddressRange = fake_cuMemGetHandleForAddressRange,
        .cuMemGetInfo_v2 = fake_cuMemGetInfo,
    };
}

static void make_device(struct devices *devices)
{
    devices->count = 1;
    devices->stride = 4ull << 30;
    devices->device[0].record.granularity = 2u << 20;
    devices->device[0].record.total_memory = 1u << 30;
    devices->device[0].record.shown_memory = 1u << 30;
    devices->device[0].record.priority_greatest = -5;
}

static int make_parts(struct server *server)
{
    const struct page_lock_options locking = {.whole = false};
    const struct copy_options copies = {
        .no_copy_load = true, .no_copy_kernel = true, .no_address_scan = true};
    const struct launch_options launches = {.no_fence_kernel = true, .no_context_hold = true};

    return exclusive_init(&server->devices) || server_life_init(server, worker_run) ||
           server_ipc_init(server) || server_memory_init(server, &locking) ||
           server_partitions_init(server) || server_modules_init(server, true) ||
           server_streams_init(server) || server_printf_init(server) ||
           server_copies_init(server, &copies) || server_arrays_init(server) ||
           server_launch_init(server, &launches) || server_graphs_init(server) ||
           server_accounting_init(server);
}

/* For all streams that tests create. */
static void give_capacity(const struct device *device)
{
    for (unsigned i = 0; i < FIXTURE_CAPACITY; i++)
        capacity_give(device, CAPACITY_STREAM);
}

int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    const struct server_client who = {.identity.pid = 4711};

    memset(&fake, 0, sizeof(fake));
    fill_table();
    make_device(&fixture->server.devices);
    server_init(&fixture->server);
    if (make_parts(&fixture->server))
        return -1;
    fixture->server.streams->no_flow_control = true;
    give_capacity(&fixture->server.devices.device[0]);
    server_quotas_init(NULL);
    fixture->session = session_create(&fixture->server, &who, 1);

    struct window *window = &fixture->window;
    window->devices = &fixture->server.devices;
    window->page_locker = server_windows(&fixture->server)->page_locker;
    window->base = WINDOW_FIRST;
    window->host_base = (uintptr_t)calloc(1, GPU_REGION_SIZE);
    list_init(&window->idle);
    fixture->session->window = window;
    *state = fixture;
    return channel_server_create(&fixture->session->channel);
}

static void destroy_streams(struct fixture *fixture)
{
    struct list *streams =
        session_device_streams(fixture->session, &fixture->server.devices.device[0]);

    list_for_each_safe (struct stream, stream, streams, link) {
        list_remove(&stream->link);
        stream_close(stream);
        stream_destroy(stream);
    }
}

int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;

    destroy_streams(fixture);
    fixture->session->window = NULL;
    session_destroy(fixture->session);
    server_parts_fini(&fixture->server);
    server_life_fini(&fixture->server);
    exclusive_fini(&fixture->server.devices);
    free((void *)(uintptr_t)fixture->window.host_base);
    ranges_fini(&fixture->window.used);
    free(fixture);
    return 0;
}

uint64_t fixture_handle(enum wire_handle kind, uint32_t index)
{
    return (uint64_t)kind << 48 | 1ull << 24 | index;
}

struct stored_image *fixture_image(struct fixture *fixture, const char *text)
{
    struct stored_image *code = NULL;
    int fd = -1;

    assert_int_equal(shm_create_read_only("test", text, strlen(text), &fd), 0);
    assert_int_equal(
        image_store_add(&server_module_cache(&fixture->server)->images, fd, strlen(text), 1, &code),
        CUDA_SUCCESS);
    return code;
}

struct stream *fixture_stream(struct fixture *fixture, uint32_t index, uint32_t flags)
{
    const struct wire_cuStreamCreateWithPriority in = {
        .hStream = fixture_handle(WIRE_STREAM, index), .flags = flags, .word = index};

    serve_cuStreamCreateWithPriority(fixture->session, &in);
    return session_lookup(fixture->session, WIRE_STREAM, in.hStream);
}

int fixture_setup_connected(void **state)
{
    int pair[2];

    if (fixture_setup(state) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
        return -1;
    struct fixture *fixture = *state;
    fixture->session->socket = pair[0];
    fixture->server.life->control_fd = pair[1];
    return 0;
}

int fixture_teardown_connected(void **state)
{
    struct fixture *fixture = *state;

    close(fixture->server.life->control_fd);
    return fixture_teardown(state);
}
