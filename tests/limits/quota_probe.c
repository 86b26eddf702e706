/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes more and more of one kind of thing: quota_probe KIND MOST. Prints how many there were until
 * the first error, or MOST, and that error. Then it gives half of them back, and prints how many
 * more can be made, and the error that ends that. Calls are answered late: each thing is waited
 * for.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_prototypes.h"

#define THINGS_MAX 256u
#define PIECE_BYTES (4u << 20)
#define RESERVED_BYTES (2 * PIECE_BYTES) /* ranges that touch are one */
#define NODES 2048u

union thing {
    CUstream stream;
    CUevent event;
    CUmodule module;
    CUarray array;
    CUdeviceptr address;
    void *host;
    CUgraphExec exec;
    struct {
        CUstream stream;
        CUdeviceptr word;
    } wait;
};

struct kind {
    const char *name;
    CUresult (*make)(union thing *thing);
    CUresult (*end)(union thing *thing);
};

static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry nothing(.param .u64 unused) { ret; }\n";

static CUdeviceptr word;
static CUgraph graph;

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, result);
    exit(1);
}

static CUresult make_stream(union thing *thing)
{
    CUresult result = cuStreamCreate(&thing->stream, CU_STREAM_NON_BLOCKING);

    if (result == CUDA_SUCCESS)
        result = cuMemsetD32Async(word, 7, 1, thing->stream);
    return result != CUDA_SUCCESS ? result : cuStreamSynchronize(thing->stream);
}

static CUresult end_stream(union thing *thing)
{
    return cuStreamDestroy_v2(thing->stream);
}

static CUresult make_event(union thing *thing)
{
    CUresult result = cuEventCreate(&thing->event, CU_EVENT_DISABLE_TIMING);

    if (result == CUDA_SUCCESS)
        result = cuEventRecord(thing->event, NULL);
    return result != CUDA_SUCCESS ? result : cuEventSynchronize(thing->event);
}

static CUresult end_event(union thing *thing)
{
    return cuEventDestroy_v2(thing->event);
}

static CUresult make_module(union thing *thing)
{
    return cuModuleLoadData(&thing->module, text);
}

static CUresult end_module(union thing *thing)
{
    return cuModuleUnload(thing->module);
}

static CUresult make_array(union thing *thing)
{
    const CUDA_ARRAY_DESCRIPTOR what = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

    return cuArrayCreate_v2(&thing->array, &what);
}

static CUresult end_array(union thing *thing)
{
    return cuArrayDestroy(thing->array);
}

static CUresult make_mapping(union thing *thing)
{
    CUmemGenericAllocationHandle memory;
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    const CUmemAccessDesc access = {.location = what.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    CUresult result = cuMemCreate(&memory, PIECE_BYTES, &what, 0);

    if (result != CUDA_SUCCESS)
        return result;
    must(cuMemAddressReserve(&thing->address, RESERVED_BYTES, 0, 0, 0), "cuMemAddressReserve");
    must(cuMemMap(thing->address, PIECE_BYTES, 0, memory, 0), "cuMemMap");
    must(cuMemRelease(memory), "cuMemRelease"); /* lives as long as it is mapped */
    return cuMemSetAccess(thing->address, PIECE_BYTES, &access, 1);
}

static CUresult end_mapping(union thing *thing)
{
    CUresult result = cuMemUnmap(thing->address, PIECE_BYTES);

    return result != CUDA_SUCCESS ? result : cuMemAddressFree(thing->address, RESERVED_BYTES);
}

static CUresult make_host_memory(union thing *thing)
{
    return cuMemHostAlloc(&thing->host, PIECE_BYTES, 0);
}

static CUresult end_host_memory(union thing *thing)
{
    return cuMemFreeHost(thing->host);
}

static void make_graph(void)
{
    CUcontext context;

    must(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = word, .elementSize = 4, .width = 1, .height = 1};
    must(cuGraphCreate(&graph, 0), "cuGraphCreate");
    for (unsigned i = 0; i < NODES; i++) {
        CUgraphNode node;

        must(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context), "cuGraphAddMemsetNode");
    }
}

static CUresult make_exec(union thing *thing)
{
    if (!graph)
        make_graph();
    return cuGraphInstantiateWithFlags(&thing->exec, graph, 0);
}

static CUresult end_exec(union thing *thing)
{
    return cuGraphExecDestroy(thing->exec);
}

/* The server's answer to what comes behind the wait brings its error. */
static CUresult make_wait(union thing *thing)
{
    must(cuStreamCreate(&thing->wait.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuMemAlloc_v2(&thing->wait.word, sizeof(uint32_t)), "cuMemAlloc");
    must(cuMemsetD32Async(thing->wait.word, 0, 1, thing->wait.stream), "cuMemsetD32Async");
    must(cuStreamSynchronize(thing->wait.stream), "cuStreamSynchronize");
    CUresult result =
        cuStreamWaitValue32_v2(thing->wait.stream, thing->wait.word, 1, CU_STREAM_WAIT_VALUE_GEQ);

    if (result == CUDA_SUCCESS)
        result = cuMemsetD32Async(word, 7, 1, NULL);
    return result != CUDA_SUCCESS ? result : cuStreamSynchronize(NULL);
}

static CUresult end_wait(union thing *thing)
{
    CUresult result = cuMemsetD32Async(thing->wait.word, 1, 1, NULL);

    return result != CUDA_SUCCESS ? result : cuStreamSynchronize(thing->wait.stream);
}

static CUresult make_export(union thing *thing)
{
    const CUmemAllocationProp what = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
    };
    CUmemGenericAllocationHandle memory;
    int fd = -1;

    (void)thing;
    must(cuMemCreate(&memory, PIECE_BYTES, &what, 0), "cuMemCreate");
    CUresult result =
        cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (fd >= 0)
        close(fd);
    must(cuMemRelease(memory), "cuMemRelease");
    return result;
}

static CUresult end_nothing(union thing *thing)
{
    (void)thing;
    return CUDA_SUCCESS;
}

/* More than the memory limit. Succeeds when that fails, so that there are as many as are asked for.
 */
static CUresult make_mistake(union thing *thing)
{
    return cuMemAlloc_v2(&thing->address, 128u << 20) == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN
                                                                      : CUDA_SUCCESS;
}

static const struct kind kinds[] = {
    {"streams", make_stream, end_stream},      {"events", make_event, end_event},
    {"modules", make_module, end_module},      {"arrays", make_array, end_array},
    {"ranges", make_mapping, end_mapping},     {"host-memory", make_host_memory, end_host_memory},
    {"graph-memory", make_exec, end_exec},     {"waits", make_wait, end_wait},
    {"kept-memory", make_export, end_nothing}, {"mistakes", make_mistake, end_nothing},
};

static const struct kind *find_kind(const char *name)
{
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    }
    return NULL;
}

/* From the thing of that number on; the number that could not be made. */
static unsigned make(const struct kind *kind, union thing *things, unsigned number, unsigned most)
{
    CUresult result = CUDA_SUCCESS;
    unsigned first = number;

    while (number < most && (result = kind->make(&things[number])) == CUDA_SUCCESS)
        number++;
    printf("%u %d\n", number - first, result);
    if (kind->make != make_wait)
        cuCtxSynchronize(); /* the work of what was refused may have failed, too */
    return number;
}

int main(int argc, char **argv)
{
    const struct kind *kind = argc == 3 ? find_kind(argv[1]) : NULL;
    unsigned most = kind ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    static union thing things[THINGS_MAX];
    CUcontext context;

    if (!most || most > THINGS_MAX) {
        fprintf(stderr, "usage: quota_probe KIND MOST\n");
        return 2;
    }
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuMemAlloc_v2(&word, sizeof(uint32_t)), "cuMemAlloc");
    unsigned count = make(kind, things, 0, most), kept = count / 2;
    for (unsigned i = kept; i < count; i++)
        must(kind->end(&things[i]), "end");
    make(kind, things, kept, most);
    return 0;
}
