/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of one and a half times what the device has, or the program may have of it. Every
 * piece is there for kernels and for the host. Only a small device is filled.
 */
#include "check.h"

#include <stdio.h>

#define PIECES 6u
#define SMALL_DEVICE (512u << 20)

static CUmodule kernels;
static CUdeviceptr pieces[PIECES];
static uint32_t count; /* words of a piece */

static uint32_t *words_of(unsigned piece)
{
    return (uint32_t *)(uintptr_t)pieces[piece];
}

static void add(unsigned piece, uint32_t value)
{
    uint32_t turns = 0;
    void *parameters[] = {&pieces[piece], &value, &count, &turns};

    MUST(cuLaunchKernel(get_kernel(kernels, "slow_add"), 16, 1, 1, 256, 1, 1, 0, NULL, parameters,
                        NULL));
}

static bool are(unsigned piece, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (words_of(piece)[i] != value + i % 7)
            return false;
    return true;
}

static void make_all(void)
{
    for (unsigned i = 0; i < PIECES; i++) {
        MUST(cuMemAllocManaged(&pieces[i], (size_t)count * 4, CU_MEM_ATTACH_GLOBAL));
        for (uint32_t at = 0; at < count; at++)
            words_of(i)[at] = i + at % 7;
    }
}

static void free_all(void)
{
    for (unsigned i = 0; i < PIECES; i++)
        MUST(cuMemFree_v2(pieces[i]));
}

static void each_piece_is_used(void)
{
    make_all();
    for (uint32_t round = 1; round <= 2; round++) {
        for (unsigned i = 0; i < PIECES; i++)
            add(i, 100);
        MUST(cuCtxSynchronize());
        for (unsigned i = 0; i < PIECES; i++)
            IS_TRUE(are(i, i + 100 * round));
    }
    free_all();
}

/* Also what follows one another, and is prefetched to where it was or will be. */
static void pieces_are_prefetched(void)
{
    CUdevice device;

    MUST(cuCtxGetDevice(&device));
    make_all();
    for (unsigned i = 0; i < PIECES; i++) {
        MUST(cuMemPrefetchAsync(pieces[i], (size_t)count * 4, device, NULL));
        add(i, 1000);
        MUST(cuMemPrefetchAsync(pieces[i], (size_t)count * 4, CU_DEVICE_CPU, NULL));
    }
    MUST(cuCtxSynchronize());
    for (unsigned i = 0; i < PIECES; i++)
        IS_TRUE(are(i, i + 1000));
    free_all();
}

/* Those that are used come to the device, and the others go; and a kernel may use any of them. */
static void some_are_used_more_than_others(void)
{
    make_all();
    for (uint32_t round = 1; round <= PIECES; round++) {
        for (unsigned i = 0; i < 4; i++)
            add(round % PIECES, 10);
        add((round + 2) % PIECES, 10);
        if (round % 2)
            continue;
        MUST(cuCtxSynchronize());
        IS_TRUE(words_of(round % PIECES)[7] >= round % PIECES + 40);
    }
    MUST(cuCtxSynchronize());
    for (unsigned i = 0; i < PIECES; i++)
        IS_TRUE(are(i, i + 50));
    free_all();
}

/* Memory of the device itself comes before managed memory. */
static void other_memory_finds_room(void)
{
    CUdeviceptr plain;

    make_all();
    for (unsigned i = 0; i < PIECES; i++)
        add(i, 7);
    MUST(cuMemAlloc_v2(&plain, (size_t)count * 4));
    MUST(cuMemsetD32_v2(plain, 5, count));
    for (unsigned i = 0; i < PIECES; i++)
        add(i, 7);
    MUST(cuCtxSynchronize());
    for (unsigned i = 0; i < PIECES; i++)
        IS_TRUE(are(i, i + 14));
    MUST(cuMemFree_v2(plain));
    free_all();
}

/* What a piece had is there for others. */
static void freed_pieces_make_room(void)
{
    CUdeviceptr plain;

    make_all();
    free_all();
    MUST(cuMemAlloc_v2(&plain, (size_t)count * 4));
    MUST(cuMemFree_v2(plain));
}

static bool takes_turns(void)
{
    int concurrent;

    MUST(cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    return !concurrent;
}

static size_t free_now(void)
{
    size_t free_bytes, total;

    MUST(cuMemGetInfo_v2(&free_bytes, &total));
    return free_bytes;
}

/* ---- graphs ---- */

/* A kernel on the first piece, whose words go to the second one; the third one is set. */
static CUgraphExec make_graph(CUstream stream)
{
    uint32_t value = 1, turns = 0;
    void *parameters[] = {&pieces[0], &value, &count, &turns};
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuLaunchKernel(get_kernel(kernels, "slow_add"), 16, 1, 1, 256, 1, 1, 0, stream, parameters,
                        NULL));
    MUST(cuMemcpyDtoDAsync_v2(pieces[1], pieces[0], (size_t)count * 4, stream));
    MUST(cuMemsetD32Async(pieces[2], 6, count, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    return exec;
}

static void launch_graph(CUgraphExec exec, CUstream stream)
{
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
}

/* The memory behind the addresses of a graph changes between its launches. Other memory sends a
 * piece away where the limit is tight, and the graph's uses bring it back. */
static void graphs_find_pieces_that_have_moved(void)
{
    CUgraphExec exec;
    CUdeviceptr plain;
    CUstream stream;
    bool set = true;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    make_all();
    exec = make_graph(stream);
    launch_graph(exec, stream);
    MUST(cuMemAlloc_v2(&plain, takes_turns() ? (size_t)count * 6 : 4096));
    launch_graph(exec, stream);
    MUST(cuMemFree_v2(plain));
    for (unsigned i = 0; i < 4; i++)
        launch_graph(exec, stream);
    IS_TRUE(are(0, 6) && are(1, 6));
    for (uint32_t i = 0; i < count; i++)
        set &= words_of(2)[i] == 6;
    IS_TRUE(set && are(3, 3) && are(4, 4) && are(5, 5));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuStreamDestroy_v2(stream));
    free_all();
}

/* ---- one array that is larger than the device ---- */

static CUdeviceptr whole;
static uint32_t whole_count; /* words */

static void make_whole(void)
{
    whole_count = count * PIECES + 1000;
    MUST(cuMemAllocManaged(&whole, (size_t)whole_count * 4, CU_MEM_ATTACH_GLOBAL));
}

static void add_to_whole(uint32_t first, uint32_t words, uint32_t value)
{
    CUdeviceptr at = whole + (CUdeviceptr)first * 4;
    uint32_t turns = 0;
    void *parameters[] = {&at, &value, &words, &turns};

    MUST(cuLaunchKernel(get_kernel(kernels, "slow_add"), 16, 1, 1, 256, 1, 1, 0, NULL, parameters,
                        NULL));
}

static uint32_t *whole_words(void)
{
    return (uint32_t *)(uintptr_t)whole;
}

static void a_kernel_uses_an_array_that_does_not_fit(void)
{
    bool right = true;

    make_whole();
    for (uint32_t i = 0; i < whole_count; i++)
        whole_words()[i] = i;
    for (unsigned round = 0; round < 3; round++) {
        add_to_whole(0, whole_count, 5);
        MUST(cuCtxSynchronize());
        whole_words()[round]++;
    }
    for (uint32_t i = 0; i < whole_count; i++)
        right &= whole_words()[i] == i + 15 + (i < 3);
    IS_TRUE(right);
    MUST(cuMemFree_v2(whole));
}

/* Copies and memsets go from what the device holds to what waits outside, and by rows. */
static void parts_of_it_are_copied(void)
{
    CUdeviceptr half;
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcPitch = 100000,
                          .dstPitch = 100000,
                          .WidthInBytes = 99000};
    bool right = true;

    make_whole();
    half = (CUdeviceptr)whole_count / 2 * 4 & ~(CUdeviceptr)4095;
    rows.srcDevice = whole;
    rows.dstDevice = whole + half;
    rows.Height = half / 100000;
    MUST(cuMemsetD32_v2(whole, 3, whole_count));
    MUST(cuMemsetD2D32_v2(whole, 100000, 9, 99000 / 4, half / 100000));
    MUST(cuMemcpy2D_v2(&rows));
    for (uint32_t i = 0; i < half / 4; i++) {
        uint32_t expected = i / 25000 < half / 100000 && i % 25000 < 24750 ? 9 : 3;

        right &= whole_words()[i] == expected && whole_words()[half / 4 + i] == expected;
    }
    IS_TRUE(right);
    MUST(cuMemcpyDtoD_v2(whole + half, whole + 4, half - 4));
    right = true;
    for (uint32_t i = 0; i + 1 < half / 4; i++)
        right &= whole_words()[half / 4 + i] == whole_words()[i + 1];
    IS_TRUE(right);
    MUST(cuMemFree_v2(whole));
}

/* The part that kernels use comes to the device, and others go. */
static void parts_of_it_are_prefetched(void)
{
    bool right = true;
    CUdevice device;
    uint32_t part;

    MUST(cuCtxGetDevice(&device));
    make_whole();
    part = whole_count / 4;
    MUST(cuMemsetD32_v2(whole, 1, whole_count));
    for (unsigned i = 0; i < 4; i++) {
        CUdeviceptr at = whole + (CUdeviceptr)i * part * 4;

        MUST(cuMemPrefetchAsync(at, (size_t)part * 4, device, NULL));
        add_to_whole(i * part, part, i);
        MUST(cuMemPrefetchAsync(at, (size_t)part * 4, CU_DEVICE_CPU, NULL));
    }
    MUST(cuCtxSynchronize());
    for (uint32_t i = 0; i < 4 * part; i++)
        right &= whole_words()[i] == 1 + i / part;
    IS_TRUE(right);
    MUST(cuMemFree_v2(whole));
}

/* The device has as much of it as it has room for. Where host and kernels do not take turns, it has
 * what kernels have touched. */
static void a_part_of_it_is_on_the_device(void)
{
    make_whole();
    IS_TRUE(!takes_turns() || free_now() < (size_t)count * 8);
    MUST(cuMemFree_v2(whole));
}

/* What waits outside comes in for kernels when there is room again. */
static void it_comes_in_when_there_is_room(void)
{
    bool right = true;

    make_all();
    make_whole();
    MUST(cuMemsetD32_v2(whole, 0, whole_count));
    free_all();
    for (unsigned round = 0; round < 4; round++)
        add_to_whole(0, whole_count, 1);
    MUST(cuCtxSynchronize());
    for (uint32_t i = 0; i < whole_count; i++)
        right &= whole_words()[i] == 4;
    IS_TRUE(right);
    MUST(cuMemFree_v2(whole));
}

int main(void)
{
    size_t free_bytes, total;

    check_open();
    MUST(cuMemGetInfo_v2(&free_bytes, &total));
    if (total > SMALL_DEVICE) {
        puts("the device is too large to be filled");
        return 77;
    }
    kernels = load_kernels();
    count = (uint32_t)(total / 4 / 4);
    RUN(each_piece_is_used);
    RUN(pieces_are_prefetched);
    RUN(some_are_used_more_than_others);
    RUN(other_memory_finds_room);
    RUN(freed_pieces_make_room);
    RUN(graphs_find_pieces_that_have_moved);
    RUN(a_kernel_uses_an_array_that_does_not_fit);
    RUN(parts_of_it_are_copied);
    RUN(parts_of_it_are_prefetched);
    RUN(a_part_of_it_is_on_the_device);
    RUN(it_comes_in_when_there_is_room);
    return check_close();
}
