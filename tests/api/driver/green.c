/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a device that a program makes for itself: resources, green contexts, their streams, and
 * events that stand for all of a context's work.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define BLOCKS 256
#define LITTLE CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING

/* Each block says on which multiprocessor it ran, and stays there for a moment. */
static const char where_text[] = ".version 7.0\n"
                                 ".target sm_70\n"
                                 ".address_size 64\n"
                                 ".visible .entry where(.param .u64 out)\n"
                                 "{\n"
                                 ".reg .u64 %a<4>; .reg .u32 %r<5>; .reg .pred %p;\n"
                                 "ld.param.u64 %a1, [out];\n"
                                 "mov.u32 %r1, %ctaid.x;\n"
                                 "mov.u32 %r2, %smid;\n"
                                 "mul.wide.u32 %a2, %r1, 4;\n"
                                 "add.u64 %a3, %a1, %a2;\n"
                                 "mov.u32 %r3, 0;\n"
                                 "again:\n"
                                 "add.u32 %r3, %r3, 1;\n"
                                 "st.global.u32 [%a3], %r2;\n"
                                 "setp.lt.u32 %p, %r3, 200;\n"
                                 "@%p bra again;\n"
                                 "ret;\n"
                                 "}\n";

struct places {
    uint64_t bits[16]; /* by number of a multiprocessor */
    unsigned count;
};

static const char cluster_text[] = ".version 8.0\n"
                                   ".target sm_90\n"
                                   ".address_size 64\n"
                                   ".visible .entry meet()\n"
                                   "{\n"
                                   "barrier.cluster.arrive.aligned;\n"
                                   "barrier.cluster.wait.aligned;\n"
                                   "ret;\n"
                                   "}\n";

static CUdevice device;
static CUcontext primary;
static CUfunction where, slow;
static CUdevResource all, halves[2];
static CUgreenCtx green[2];
static CUcontext converted[2];
static struct places first_part;

static struct places places_of(CUstream stream)
{
    static uint32_t numbers[BLOCKS];
    struct places places = {0};
    CUdeviceptr out = make_words(BLOCKS, 0);
    void *parameters[] = {&out};

    EXPECT(CUDA_SUCCESS,
           cuLaunchKernel(where, BLOCKS, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH_v2(numbers, out, sizeof(numbers)));
    for (unsigned i = 0; i < BLOCKS; i++)
        places.bits[numbers[i] / 64 % 16] |= 1ull << numbers[i] % 64;
    for (unsigned i = 0; i < 16; i++)
        places.count += (unsigned)__builtin_popcountll(places.bits[i]);
    MUST(cuMemFree_v2(out));
    return places;
}

static bool overlap(const struct places *a, const struct places *b)
{
    for (unsigned i = 0; i < 16; i++)
        if (a->bits[i] & b->bits[i])
            return true;
    return false;
}

static void resources(void)
{
    CUdevResource resource;

    EXPECT(CUDA_SUCCESS, cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    IS_TRUE(all.type == CU_DEV_RESOURCE_TYPE_SM && all.sm.smCount >= 4);
    EXPECT(CUDA_SUCCESS, cuCtxGetDevResource(primary, &resource, CU_DEV_RESOURCE_TYPE_SM));
    IS_TRUE(resource.sm.smCount == all.sm.smCount);
    EXPECT(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(device, &resource, 0));
    EXPECT(CUDA_ERROR_INVALID_DEVICE,
           cuDeviceGetDevResource(99, &resource, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetDevResource(device, NULL, CU_DEV_RESOURCE_TYPE_SM));
}

static void splits(void)
{
    CUdevResource rest;
    unsigned half = all.sm.smCount / 4 * 2, count = 0;

    EXPECT(CUDA_SUCCESS, cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, LITTLE, half));
    IS_TRUE(count == 2);
    EXPECT(CUDA_SUCCESS, cuDevSmResourceSplitByCount(halves, &count, &all, &rest, LITTLE, half));
    IS_TRUE(count == 2 && halves[0].sm.smCount == half && halves[1].sm.smCount == half);
    count = 1;
    EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
           cuDevSmResourceSplitByCount(halves, &count, &all, NULL, 0, all.sm.smCount + 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDevSmResourceSplitByCount(halves, NULL, &all, NULL, 0, half));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDevSmResourceSplitByCount(halves, &count, &all, NULL, 3, half));
    count = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDevSmResourceSplitByCount(halves, &count, &all, NULL, LITTLE, half));
    EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
           cuDevSmResourceSplitByCount(NULL, &count, &halves[0], NULL, LITTLE, 2));
    count = 1;
    EXPECT(CUDA_SUCCESS, cuDevSmResourceSplitByCount(&rest, &count, &all, NULL, 0, all.sm.smCount));
    IS_TRUE(count == 1 && rest.sm.smCount == all.sm.smCount);
    memset(&rest, 0, sizeof(rest));
    EXPECT(CUDA_ERROR_INVALID_RESOURCE_TYPE,
           cuDevSmResourceSplitByCount(halves, &count, &rest, NULL, LITTLE, half));
}

static void contexts(void)
{
    CUdevResource resource;
    CUcontext again;
    unsigned long long ids[2];

    for (int i = 0; i < 2; i++) {
        CUdevResourceDesc description;

        EXPECT(CUDA_SUCCESS, cuDevResourceGenerateDesc(&description, &halves[i], 1));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green[i], description, device, 0));
        MUST(cuGreenCtxCreate(&green[i], description, device, CU_GREEN_CTX_DEFAULT_STREAM));
        EXPECT(CUDA_SUCCESS,
               cuGreenCtxGetDevResource(green[i], &resource, CU_DEV_RESOURCE_TYPE_SM));
        IS_TRUE(resource.sm.smCount == halves[i].sm.smCount);
        EXPECT(CUDA_SUCCESS, cuCtxFromGreenCtx(&converted[i], green[i]));
        EXPECT(CUDA_SUCCESS, cuCtxFromGreenCtx(&again, green[i]));
        IS_TRUE(again == converted[i] && again != primary);
        EXPECT(CUDA_SUCCESS, cuGreenCtxGetId(green[i], &ids[i]));
    }
    IS_TRUE(ids[0] != ids[1]);
    EXPECT(CUDA_SUCCESS, cuCtxGetDevResource(converted[0], &resource, CU_DEV_RESOURCE_TYPE_SM));
    IS_TRUE(resource.sm.smCount == halves[0].sm.smCount);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(converted[0]));
}

static void streams_of_parts(void)
{
    CUstream streams[2];
    CUgreenCtx found = NULL;
    struct places places[2];

    for (int i = 0; i < 2; i++) {
        EXPECT(CUDA_SUCCESS,
               cuGreenCtxStreamCreate(&streams[i], green[i], CU_STREAM_NON_BLOCKING, 0));
        places[i] = places_of(streams[i]);
        IS_TRUE(places[i].count <= halves[i].sm.smCount);
        EXPECT(CUDA_SUCCESS, cuStreamGetGreenCtx(streams[i], &found));
        IS_TRUE(found == green[i]);
    }
    first_part = places[0];
    IS_TRUE(!overlap(&places[0], &places[1]));
    EXPECT(CUDA_SUCCESS, cuStreamGetGreenCtx(NULL, &found));
    IS_TRUE(found == NULL);
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(streams[0]));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(streams[1]));
}

/* With a green context current, streams and the default stream are in it, and all else is as in the
 * primary context. */
static void one_is_current(void)
{
    struct places places;
    CUcontext now, owner;
    CUgreenCtx found;
    CUstream stream;
    CUdeviceptr memory;
    CUdevResource resource;

    EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(converted[1]));
    EXPECT(CUDA_SUCCESS, cuCtxGetCurrent(&now));
    IS_TRUE(now == converted[1]);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT,
           cuCtxGetDevResource(NULL, &resource, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT(CUDA_SUCCESS, cuCtxGetDevResource(now, &resource, CU_DEV_RESOURCE_TYPE_SM));
    IS_TRUE(resource.sm.smCount == halves[1].sm.smCount);
    places = places_of(NULL);
    IS_TRUE(places.count <= halves[1].sm.smCount && !overlap(&places, &first_part));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(CU_STREAM_PER_THREAD));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamGetGreenCtx(CU_STREAM_PER_THREAD, &found));
    EXPECT(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    places = places_of(stream);
    IS_TRUE(places.count <= halves[1].sm.smCount && !overlap(&places, &first_part));
    EXPECT(CUDA_SUCCESS, cuStreamGetGreenCtx(stream, &found));
    IS_TRUE(found == green[1]);
    EXPECT(CUDA_SUCCESS, cuStreamGetCtx_v2(stream, &owner, &found));
    IS_TRUE(owner == primary && found == green[1]);
    EXPECT(CUDA_SUCCESS, cuStreamGetCtx(stream, &owner));
    IS_TRUE(owner == converted[1]);
    memory = make_words(16, 3);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
    EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(primary));
    IS_TRUE(words_are(memory, 16, 3));
    MUST(cuMemFree_v2(memory));
}

static void add_slowly(CUstream stream, CUdeviceptr word)
{
    uint32_t one = 1, turns = SLOW;
    void *parameters[] = {&word, &one, &one, &turns};

    launch_one(slow, stream, parameters);
}

/* An event for all streams of a green context, and one that all of another wait for. */
static void events_of_contexts(void)
{
    CUdeviceptr word = make_words(1, 0);
    CUstream first, second, later;
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuGreenCtxStreamCreate(&first, green[0], CU_STREAM_NON_BLOCKING, 0));
    MUST(cuGreenCtxStreamCreate(&second, green[1], CU_STREAM_NON_BLOCKING, 0));
    add_slowly(first, word);
    EXPECT(CUDA_SUCCESS, cuGreenCtxRecordEvent(green[0], event));
    EXPECT(CUDA_SUCCESS, cuGreenCtxWaitEvent(green[1], event));
    add_slowly(second, word);
    MUST(cuGreenCtxStreamCreate(&later, green[1], CU_STREAM_NON_BLOCKING, 0));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(later));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent(NULL, event));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxWaitEvent(NULL, event));
    EXPECT(CUDA_SUCCESS, cuCtxRecordEvent(converted[1], event));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    IS_TRUE(word_at(word) == 2);
    add_slowly(first, word);
    EXPECT(CUDA_SUCCESS, cuCtxRecordEvent(primary, event));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    IS_TRUE(word_at(word) == 3);
    add_slowly(first, word);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(word_at(word) == 4);
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuGreenCtxRecordEvent(green[0], NULL));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(later));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(second));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(first));
    MUST(cuEventDestroy_v2(event));
    MUST(cuMemFree_v2(word));
}

/* The result of a launch, and whether clusters of so many blocks are said to run there. */
static CUresult run_clusters(CUfunction meet, CUstream stream, unsigned size, bool *ret_possible)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {size, 1, 1}};
    const CUlaunchConfig config = {
        size * 4, 1, 1, 32, 1, 1, .hStream = stream, .attrs = &attribute, .numAttrs = 1};
    int count = -1;

    EXPECT(CUDA_SUCCESS, cuOccupancyMaxActiveClusters(&count, meet, &config));
    *ret_possible = count > 0;
    CUresult result = cuLaunchKernelEx(&config, meet, NULL, NULL);
    return result ? result : cuStreamSynchronize(stream);
}

static int largest_cluster(CUfunction meet, CUstream stream)
{
    const CUlaunchConfig config = {16, 1, 1, 32, 1, 1, .hStream = stream};
    int size = -1;

    EXPECT(CUDA_SUCCESS, cuOccupancyMaxPotentialClusterSize(&size, meet, &config));
    return size;
}

static CUstream stream_of_part(unsigned flags, unsigned size, CUgreenCtx *ret_green)
{
    CUdevResourceDesc description;
    CUdevResource part;
    CUstream stream;
    unsigned count = 1;

    MUST(cuDevSmResourceSplitByCount(&part, &count, &all, NULL, flags, size));
    MUST(cuDevResourceGenerateDesc(&description, &part, 1));
    MUST(cuGreenCtxCreate(ret_green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuGreenCtxStreamCreate(&stream, *ret_green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

/* Where co-scheduling has been given up, only pairs of blocks run together. */
static void clusters(void)
{
    CUgreenCtx little, large;
    CUmodule module;
    bool possible;
    int capable = 0;

    MUST(cuDeviceGetAttribute(&capable, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device));
    if (!capable)
        return;
    MUST(cuModuleLoadData(&module, cluster_text));
    CUfunction meet = get_kernel(module, "meet");
    CUstream pair = stream_of_part(LITTLE, 2, &little), group = stream_of_part(0, 8, &large);
    EXPECT(CUDA_SUCCESS, run_clusters(meet, pair, 2, &possible));
    IS_TRUE(possible);
    EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, run_clusters(meet, pair, 4, &possible));
    IS_TRUE(!possible);
    IS_TRUE(largest_cluster(meet, pair) == 2);
    EXPECT(CUDA_SUCCESS, run_clusters(meet, group, 8, &possible));
    IS_TRUE(possible);
    IS_TRUE(largest_cluster(meet, group) == 8);
    EXPECT(CUDA_SUCCESS, run_clusters(meet, NULL, 8, &possible));
    IS_TRUE(possible);
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(pair));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(group));
    EXPECT(CUDA_SUCCESS, cuGreenCtxDestroy(little));
    EXPECT(CUDA_SUCCESS, cuGreenCtxDestroy(large));
}

static void a_capture_is_refused(void)
{
    CUstream stream;
    CUevent event;
    CUgraph graph;

    MUST(cuEventCreate(&event, 0));
    MUST(cuGreenCtxStreamCreate(&stream, green[0], CU_STREAM_NON_BLOCKING, 0));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGreenCtxRecordEvent(green[0], event));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
    MUST(cuEventDestroy_v2(event));
}

static void the_end(void)
{
    CUstream stream;
    CUcontext now;

    MUST(cuGreenCtxStreamCreate(&stream, green[0], CU_STREAM_NON_BLOCKING, 0));
    EXPECT(CUDA_SUCCESS, cuGreenCtxDestroy(green[0]));
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamQuery(stream));
    EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(converted[1]));
    EXPECT(CUDA_SUCCESS, cuGreenCtxDestroy(green[1]));
    EXPECT(CUDA_SUCCESS, cuCtxGetCurrent(&now));
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(primary));
    IS_TRUE(places_of(NULL).count > 0);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

int main(void)
{
    CUmodule module;

    device = check_open();
    MUST(cuCtxGetCurrent(&primary));
    MUST(cuModuleLoadData(&module, where_text));
    where = get_kernel(module, "where");
    slow = get_kernel(load_kernels(), "slow_add");
    RUN(resources);
    RUN(splits);
    RUN(contexts);
    RUN(streams_of_parts);
    RUN(one_is_current);
    RUN(events_of_contexts);
    RUN(clusters);
    RUN(a_capture_is_refused);
    RUN(the_end);
    return check_close();
}
