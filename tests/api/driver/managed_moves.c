/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory where host and device take turns: whatever has been done to it by whom, each finds
 * what was written last. Everything here is legal on a device whose concurrentManagedAccess is 0.
 */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE (3u << 20) /* words: 12 MiB */

static CUmodule kernels;
static CUdevice device;

static uint32_t *words_of(CUdeviceptr address)
{
    return (uint32_t *)(uintptr_t)address;
}

static CUdeviceptr make_managed(size_t count, unsigned flags)
{
    CUdeviceptr address;

    MUST(cuMemAllocManaged(&address, count * sizeof(uint32_t), flags));
    return address;
}

static void launch(const char *kernel, CUstream stream, CUdeviceptr address, uint32_t value,
                   uint32_t count, uint32_t turns)
{
    void *parameters[] = {&address, &value, &count, &turns};

    MUST(cuLaunchKernel(get_kernel(kernels, kernel), 4, 1, 1, 64, 1, 1, 0, stream, parameters,
                        NULL));
}

static bool are(const uint32_t *words, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (words[i] != value)
            return false;
    return true;
}

static void large_memory_takes_turns(void)
{
    CUdeviceptr address = make_managed(LARGE, CU_MEM_ATTACH_GLOBAL);
    uint32_t *words = words_of(address);

    for (uint32_t i = 0; i < LARGE; i++)
        words[i] = 5;
    launch("slow_add", NULL, address, 1, LARGE, 0);
    launch("slow_add", NULL, address, 1, LARGE, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(are(words, LARGE, 7));
    words[LARGE / 2] = 100;
    words[7] += 100;
    launch("slow_add", NULL, address, 1, LARGE, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(words[LARGE / 2] == 101 && words[7] == 108);
    words[LARGE / 2] = words[7] = 8;
    IS_TRUE(are(words, LARGE, 8));
    MUST(cuMemFree_v2(address));
}

static void what_kernels_write_first_is_seen(void)
{
    CUdeviceptr address = make_managed(LARGE, CU_MEM_ATTACH_GLOBAL);

    launch("fill", NULL, address, 9, LARGE, 0);
    MUST(cuStreamSynchronize(NULL));
    IS_TRUE(are(words_of(address), LARGE, 9));
    MUST(cuMemFree_v2(address));
    address = make_managed(LARGE, CU_MEM_ATTACH_GLOBAL);
    words_of(address)[LARGE - 1] = 3;
    launch("slow_add", NULL, address + (LARGE - 1) * 4, 1, 1, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(words_of(address)[LARGE - 1] == 4);
    MUST(cuMemFree_v2(address));
}

/* Neighbors share no page, whatever their sizes are. */
static void small_ones_lie_side_by_side(void)
{
    CUdeviceptr all[40];

    for (uint32_t i = 0; i < 40; i++) {
        all[i] = make_managed(i * 37 + 1, CU_MEM_ATTACH_GLOBAL);
        words_of(all[i])[i * 37] = i;
    }
    for (uint32_t i = 0; i < 40; i++)
        launch("slow_add", NULL, all[i], 1, i * 37 + 1, 0);
    MUST(cuCtxSynchronize());
    for (uint32_t i = 0; i < 40; i += 2) {
        IS_TRUE(words_of(all[i])[i * 37] == i + 1);
        MUST(cuMemFree_v2(all[i]));
    }
    for (uint32_t i = 1; i < 40; i += 2) {
        IS_TRUE(words_of(all[i])[i * 37] == i + 1);
        MUST(cuMemFree_v2(all[i]));
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(all[3]));
}

/* Also where there is not much more than that. */
static void freed_memory_serves_others(void)
{
    CUdeviceptr managed = make_managed(LARGE, CU_MEM_ATTACH_GLOBAL), plain;

    launch("fill", NULL, managed, 1, LARGE, 0);
    MUST(cuMemFree_v2(managed));
    EXPECT(CUDA_SUCCESS, cuMemAlloc_v2(&plain, LARGE * 4));
    MUST(cuMemFree_v2(plain));
}

static void system_calls_reach_it(void)
{
    CUdeviceptr address = make_managed(LARGE, CU_MEM_ATTACH_GLOBAL);
    uint32_t *words = words_of(address), got[4096];
    int ends[2];

    launch("fill", NULL, address, 21, LARGE, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(pipe(ends) == 0);
    IS_TRUE(write(ends[1], words + 5000, sizeof(got)) == sizeof(got));
    IS_TRUE(read(ends[0], got, sizeof(got)) == sizeof(got));
    IS_TRUE(are(got, 4096, 21));
    IS_TRUE(write(ends[1], got, sizeof(got)) == sizeof(got));
    launch("fill", NULL, address, 22, LARGE, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(read(ends[0], words + 100000, sizeof(got)) == sizeof(got));
    launch("slow_add", NULL, address, 1, LARGE, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(are(words, 100000, 23) && are(words + 100000, 4096, 22));
    IS_TRUE(are(words + 104096, LARGE - 104096, 23));
    close(ends[0]);
    close(ends[1]);
    MUST(cuMemFree_v2(address));
}

struct arguments {
    CUdeviceptr address;
    uint32_t value, count, turns;
    void *values[4];
};

static void arguments_may_lie_in_it(void)
{
    CUdeviceptr place = make_managed(1024, CU_MEM_ATTACH_GLOBAL);
    CUdeviceptr address = make_managed(1024, CU_MEM_ATTACH_GLOBAL);
    struct arguments *in = (struct arguments *)(uintptr_t)place;

    memset(words_of(address), 0, 1024 * 4);
    for (uint32_t i = 1; i <= 3; i++) {
        *in = (struct arguments){address, i, 1024, 0, {0}};
        memcpy(in->values, (void *[]){&in->address, &in->value, &in->count, &in->turns},
               sizeof(in->values));
        MUST(cuLaunchKernel(get_kernel(kernels, "slow_add"), 1, 1, 1, 32, 1, 1, 0, NULL, in->values,
                            NULL));
        MUST(cuCtxSynchronize());
    }
    MUST(cuLaunchKernel(get_kernel(kernels, "slow_add"), 1, 1, 1, 32, 1, 1, 0, NULL, in->values,
                        NULL));
    MUST(cuLaunchKernel(get_kernel(kernels, "slow_add"), 1, 1, 1, 32, 1, 1, 0, NULL,
                        (void *[]){&address, &(uint32_t){1}, &(uint32_t){1024}, &(uint32_t){0}},
                        NULL));
    MUST(cuCtxSynchronize());
    IS_TRUE(words_of(address)[1023] - words_of(address)[0] == 0 && words_of(address)[5] == 10);
    MUST(cuMemFree_v2(place));
    MUST(cuMemFree_v2(address));
}

static void a_stream_has_its_own(void)
{
    CUdeviceptr all[2];
    CUstream streams[2];

    for (unsigned i = 0; i < 2; i++) {
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        all[i] = make_managed(5000, CU_MEM_ATTACH_HOST);
        words_of(all[i])[4999] = 1;
        MUST(cuStreamAttachMemAsync(streams[i], all[i], 0, CU_MEM_ATTACH_SINGLE));
        MUST(cuStreamSynchronize(streams[i]));
    }
    for (uint32_t round = 0; round < 5; round++) {
        launch("slow_add", streams[0], all[0], 1, 5000, SLOW);
        words_of(all[1])[4999] += 10;
        MUST(cuStreamSynchronize(streams[0]));
        launch("slow_add", streams[1], all[1], 1, 5000, SLOW);
        words_of(all[0])[4999] += 10;
        MUST(cuStreamSynchronize(streams[1]));
    }
    IS_TRUE(words_of(all[0])[4999] == 56 && words_of(all[1])[4999] == 56);
    for (unsigned i = 0; i < 2; i++) {
        MUST(cuStreamAttachMemAsync(streams[i], all[i], 0, CU_MEM_ATTACH_GLOBAL));
        MUST(cuStreamSynchronize(streams[i]));
        launch("slow_add", NULL, all[i], 1, 5000, 0);
        MUST(cuCtxSynchronize());
        IS_TRUE(words_of(all[i])[4999] == 57);
        MUST(cuStreamDestroy_v2(streams[i]));
        MUST(cuMemFree_v2(all[i]));
    }
}

/* The host works on memory that no kernel may use, while one runs. */
static void memory_of_the_host_stays(void)
{
    CUdeviceptr mine = make_managed(50000, CU_MEM_ATTACH_HOST);
    CUdeviceptr other = make_managed(50000, CU_MEM_ATTACH_GLOBAL), plain = make_words(50000, 4);
    uint32_t *words = words_of(mine);

    for (uint32_t round = 1; round < 5; round++) {
        launch("slow_add", NULL, other, 1, 50000, SLOW);
        for (uint32_t i = 0; i < 50000; i++)
            words[i] = round;
        MUST(cuMemcpyDtoD_v2(plain, mine, 50000 * 4));
        IS_TRUE(words_are(plain, 50000, round) && are(words, 50000, round));
    }
    MUST(cuMemsetD32_v2(mine + 400, 77, 1000));
    MUST(cuMemcpyDtoD_v2(mine + 40000 * 4, other, 4));
    MUST(cuCtxSynchronize());
    IS_TRUE(are(words, 100, 4) && are(words + 100, 1000, 77) && are(words + 1100, 38900, 4));
    MUST(cuStreamAttachMemAsync(NULL, mine, 0, CU_MEM_ATTACH_GLOBAL));
    launch("slow_add", NULL, mine, 1, 50000, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(are(words, 100, 5) && are(words + 100, 1000, 78));
    MUST(cuMemFree_v2(mine));
    MUST(cuMemFree_v2(other));
    MUST(cuMemFree_v2(plain));
}

static bool are_at(CUdeviceptr address, uint32_t first, uint32_t count, uint32_t value)
{
    return are(words_of(address) + first, count, value);
}

static void batches_are_prefetched(void)
{
    CUdeviceptr all[3], bad[2];
    size_t sizes[] = {30000 * 4, 10000 * 4, 30000 * 4}, firsts[] = {0, 2}, wrong[] = {1, 2};
    CUmemLocation places[] = {{CU_MEM_LOCATION_TYPE_HOST, 0},
                              {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUstream stream;
    int place = 99;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint32_t i = 0; i < 3; i++) {
        all[i] = make_managed(30000, CU_MEM_ATTACH_GLOBAL);
        launch("fill", stream, all[i], i + 1, 30000, 0);
    }
    EXPECT(CUDA_SUCCESS, cuMemPrefetchBatchAsync(all, sizes, 3, places, firsts, 2, 0, stream));
    MUST(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < 3; i++)
        IS_TRUE(are_at(all[i], 0, 30000, i + 1));
    EXPECT(CUDA_SUCCESS, cuMemRangeGetAttribute(
                             &place, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, all[1], 4));
    IS_TRUE(place == CU_DEVICE_CPU);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemPrefetchBatchAsync(all, sizes, 3, places, wrong, 2, 0, stream));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemPrefetchBatchAsync(all, sizes, 3, places, firsts, 2, 1, stream));
    bad[0] = bad[1] = make_words(30000, 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemPrefetchBatchAsync(bad, sizes, 2, places, firsts, 1, 0, stream));
    for (uint32_t i = 0; i < 3; i++)
        MUST(cuMemFree_v2(all[i]));
    MUST(cuMemFree_v2(bad[0]));
    MUST(cuStreamDestroy_v2(stream));
}

/* What lies beside it stays, and what is written afterwards counts. */
static void contents_are_discarded(void)
{
    CUdeviceptr address = make_managed(30000, CU_MEM_ATTACH_GLOBAL), middle = address + 10000;
    CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    size_t size = 50000, first = 0;

    for (uint32_t i = 0; i < 30000; i++)
        words_of(address)[i] = 6;
    EXPECT(CUDA_SUCCESS, cuMemDiscardBatchAsync(&middle, &size, 1, 0, CU_STREAM_PER_THREAD));
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    launch("slow_add", NULL, address, 1, 2500, 0);
    launch("fill", NULL, middle, 8, 12500, 0);
    launch("slow_add", NULL, address + 60000, 1, 15000, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(are_at(address, 0, 2500, 7) && are_at(address, 2500, 12500, 8));
    IS_TRUE(are_at(address, 15000, 15000, 7));
    EXPECT(CUDA_SUCCESS, cuMemDiscardAndPrefetchBatchAsync(&middle, &size, 1, &place, &first, 1, 0,
                                                           CU_STREAM_PER_THREAD));
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    words_of(address)[5000] = 3;
    launch("slow_add", NULL, address, 1, 30000, 0);
    MUST(cuCtxSynchronize());
    IS_TRUE(are_at(address, 0, 2500, 8) && are_at(address, 5000, 1, 4));
    IS_TRUE(are_at(address, 15000, 15000, 8));
    MUST(cuMemFree_v2(address));
}

/* A few pages that host and device share in turns. At first it is on one stream, then on a second
 * one that has to find what the first one brought. For a while it is without the host. */
static void few_pages_take_turns(void)
{
    CUdeviceptr few = make_managed(1500, CU_MEM_ATTACH_GLOBAL);
    CUdeviceptr other = make_managed(20000, CU_MEM_ATTACH_GLOBAL);
    CUstream stream = NULL;
    uint32_t expected = 0;

    memset(words_of(few), 0, 1500 * 4);
    memset(words_of(other), 0, 20000 * 4);
    for (uint32_t round = 0; round < 120; round++) {
        bool by_host = round % 60 < 35;

        if (round == 60)
            MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        if (by_host)
            words_of(few)[1499] += 10;
        expected += by_host ? 11 : 1;
        launch("slow_add", round % 3 ? stream : NULL, few, 1, 1500, round % 4 ? 0 : SLOW);
        launch("slow_add", round % 3 ? stream : NULL, other, 1, 20000, 0);
        MUST(round % 2 ? cuCtxSynchronize() : cuStreamSynchronize(round % 3 ? stream : NULL));
        if (by_host || round == 59)
            IS_TRUE(words_of(few)[1499] == expected && words_of(few)[0] == round + 1);
    }
    IS_TRUE(words_of(few)[1499] == expected && words_of(other)[19999] == 120);
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(few));
    MUST(cuMemFree_v2(other));
}

/* What goes up just before a stream is made is there for it, too. */
static void a_new_stream_finds_it(void)
{
    CUdeviceptr few = make_managed(1000, CU_MEM_ATTACH_GLOBAL), plain = make_words(1000, 0);
    CUdeviceptr busy = make_words(1, 0);
    uint32_t n = 1000;
    void *parameters[] = {&plain, &few, &n};
    CUstream stream;

    for (uint32_t round = 1; round < 8; round++) {
        for (uint32_t i = 0; i < 1000; i++)
            words_of(few)[i] = round;
        launch("slow_add", NULL, busy, 0, 1, SLOW);
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        MUST(cuLaunchKernel(get_kernel(kernels, "copy"), 1, 1, 1, 64, 1, 1, 0, stream, parameters,
                            NULL));
        MUST(cuStreamSynchronize(stream));
        MUST(cuCtxSynchronize());
        IS_TRUE(words_are(plain, 1000, round));
        MUST(cuStreamDestroy_v2(stream));
    }
    MUST(cuMemFree_v2(few));
    MUST(cuMemFree_v2(plain));
    MUST(cuMemFree_v2(busy));
}

/* A synchronous copy has read the memory when it returns, although both sides are the device's. */
static void a_copy_out_is_done_when_it_returns(void)
{
    CUdeviceptr few = make_managed(1000, CU_MEM_ATTACH_GLOBAL), plain = make_words(1000, 0),
                other = make_words(1000, 0);
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint32_t round = 1; round < 8; round++) {
        for (uint32_t i = 0; i < 1000; i++)
            words_of(few)[i] = round;
        launch("slow_add", NULL, other, 0, 1, SLOW);
        MUST(cuMemcpy(plain, few, 4000));
        for (uint32_t i = 0; i < 1000; i++)
            words_of(few)[i] = 100;
        launch("slow_add", stream, few, 1, 1000, 0);
        MUST(cuCtxSynchronize());
        IS_TRUE(words_are(plain, 1000, round) && are(words_of(few), 1000, 101));
    }
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(few));
    MUST(cuMemFree_v2(plain));
    MUST(cuMemFree_v2(other));
}

/* ---- threads ---- */

#define THREADS 4u

static pthread_barrier_t barrier;
static CUcontext context;

struct part {
    uint32_t *words;
    uint32_t number, wrong;
};

/* Between the barriers all threads touch the memory, after the one launch of the first of them. */
static void *touch_and_launch(void *argument)
{
    struct part *part = argument;

    MUST(cuCtxSetCurrent(context));
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = part->number; i < LARGE / 8; i += THREADS)
            if (part->words[i]++ != round * 3)
                part->wrong++;
        pthread_barrier_wait(&barrier);
        if (part->number == 0) {
            launch("slow_add", NULL, (CUdeviceptr)(uintptr_t)part->words, 2, LARGE / 8, 0);
            MUST(cuCtxSynchronize());
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void threads_touch_side_by_side(void)
{
    CUdeviceptr address = make_managed(LARGE / 8, CU_MEM_ATTACH_GLOBAL);
    struct part parts[THREADS];
    pthread_t threads[THREADS];

    memset(words_of(address), 0, LARGE / 8 * 4);
    MUST(cuCtxGetCurrent(&context));
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        parts[i] = (struct part){words_of(address), i, 0};
        pthread_create(&threads[i], NULL, touch_and_launch, &parts[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        IS_TRUE(parts[i].wrong == 0);
    }
    IS_TRUE(are(words_of(address), LARGE / 8, 30));
    MUST(cuMemFree_v2(address));
}

/* ---- any sequence, against a model ---- */

#define BLOCKS 4u

static uint64_t random_state = 11;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % limit;
}

static struct block {
    CUdeviceptr address;
    uint32_t count, *expected;
} blocks[BLOCKS];

static void renew(struct block *block)
{
    static const uint32_t sizes[] = {1, 700, 1024, 30000, 300000, 1500000};

    if (block->address)
        MUST(cuMemFree_v2(block->address));
    free(block->expected);
    block->count = sizes[random_below(6)];
    block->address = make_managed(block->count, CU_MEM_ATTACH_GLOBAL);
    block->expected = calloc(block->count, 4);
    if (random_below(2))
        memset(words_of(block->address), 0, block->count * 4);
    else
        MUST(cuMemsetD32_v2(block->address, 0, block->count));
}

static void write_some(const struct block *block, uint32_t first, uint32_t count)
{
    uint32_t pace = random_below(3) ? 1 : 1000;

    for (uint32_t i = first; i < first + count; i += pace)
        words_of(block->address)[i] = block->expected[i] = random_below(1000000);
}

static void read_some(const struct block *block, uint32_t first, uint32_t count)
{
    uint32_t pace = random_below(3) ? 1 : 1000, wrong = 0;

    for (uint32_t i = first; i < first + count; i += pace)
        wrong += words_of(block->address)[i] != block->expected[i];
    IS_TRUE(wrong == 0);
}

static void add_some(const struct block *block, uint32_t first, uint32_t count)
{
    uint32_t value = random_below(1000);

    launch("slow_add", NULL, block->address + first * 4, value, count, 0);
    for (uint32_t i = first; i < first + count; i++)
        block->expected[i] += value;
}

static void copy_some(const struct block *block, uint32_t first, uint32_t count)
{
    uint32_t *own = malloc(count * 4);

    MUST(cuMemcpyDtoH_v2(own, block->address + first * 4, count * 4));
    IS_TRUE(memcmp(own, block->expected + first, count * 4) == 0);
    for (uint32_t i = 0; i < count; i++)
        own[i] = block->expected[first + i] = i;
    MUST(cuMemcpyHtoD_v2(block->address + first * 4, own, count * 4));
    free(own);
}

static void prefetch_some(const struct block *block, uint32_t first, uint32_t count)
{
    CUdevice where = random_below(2) ? device : CU_DEVICE_CPU;

    MUST(cuMemPrefetchAsync(block->address + first * 4, count * 4, where, NULL));
}

static void do_something(struct block *block)
{
    uint32_t first = random_below(block->count), count = random_below(block->count - first) + 1;

    switch (random_below(12)) {
    case 0:
    case 1:
    case 2:
        MUST(cuCtxSynchronize());
        write_some(block, first, count);
        break;
    case 3:
    case 4:
    case 5:
        MUST(cuCtxSynchronize());
        read_some(block, first, count);
        break;
    case 6:
    case 7:
    case 8:
        add_some(block, first, count);
        break;
    case 9:
        copy_some(block, first, count);
        break;
    case 10:
        prefetch_some(block, first, count);
        break;
    default:
        if (random_below(4) == 0)
            renew(block);
    }
}

static void any_sequence_is_as_expected(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        renew(&blocks[i]);
    for (unsigned i = 0; i < 400; i++)
        do_something(&blocks[random_below(BLOCKS)]);
    MUST(cuCtxSynchronize());
    for (unsigned i = 0; i < BLOCKS; i++) {
        IS_TRUE(memcmp(words_of(blocks[i].address), blocks[i].expected, blocks[i].count * 4) == 0);
        MUST(cuMemFree_v2(blocks[i].address));
        free(blocks[i].expected);
    }
}

int main(void)
{
    device = check_open();
    kernels = load_kernels();
    RUN(large_memory_takes_turns);
    RUN(what_kernels_write_first_is_seen);
    RUN(small_ones_lie_side_by_side);
    RUN(freed_memory_serves_others);
    RUN(system_calls_reach_it);
    RUN(arguments_may_lie_in_it);
    RUN(a_stream_has_its_own);
    RUN(memory_of_the_host_stays);
    RUN(few_pages_take_turns);
    RUN(a_new_stream_finds_it);
    RUN(a_copy_out_is_done_when_it_returns);
    RUN(batches_are_prefetched);
    RUN(contents_are_discarded);
    RUN(threads_touch_side_by_side);
    RUN(any_sequence_is_as_expected);
    return check_close();
}
