/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of one and a half times what the device has, or the program may have of it: every
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
    return check_close();
}
