/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random sequences of everything that managed memory is for, in threads side by side, against a
 * model. Each thread has memory of its own that only its stream uses (CU_MEM_ATTACH_SINGLE), or
 * none (CU_MEM_ATTACH_HOST), so that all is legal where concurrentManagedAccess is 0.
 *
 *     managed_random [SEED [ROUNDS]]
 */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3u
#define BLOCKS 3u

static CUcontext context;
static CUmodule kernels;
static CUdevice device;
static unsigned rounds = 150;
static bool discards; /* whether that can be relied on */

#define REMEMBERED 12u

struct block {
    CUdeviceptr address;
    uint32_t count, *expected;
    unsigned attached;
    /* What was done to it lately: printed with a difference. */
    struct deed {
        const char *name;
        uint32_t first, count;
    } deeds[REMEMBERED];
    unsigned deed_count;
};

struct player {
    uint64_t random;
    CUstream stream;
    struct block blocks[BLOCKS];
    unsigned wrong;
};

static uint32_t below(struct player *player, uint32_t limit)
{
    player->random = player->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(player->random >> 33) % limit;
}

static void remember(struct block *block, const char *name, uint32_t first, uint32_t count)
{
    block->deeds[block->deed_count++ % REMEMBERED] = (struct deed){name, first, count};
}

/* Of the differences of a player, the first is described. */
static void count_difference(struct player *player, const struct block *block, uint32_t at,
                             uint32_t found)
{
    unsigned known = block->deed_count < REMEMBERED ? block->deed_count : REMEMBERED;

    if (player->wrong++)
        return;
    fprintf(stderr, "word %u of %u is %u, expected %u; behind", at, block->count, found,
            block->expected[at]);
    for (unsigned i = block->deed_count - known; i < block->deed_count; i++) {
        const struct deed *deed = &block->deeds[i % REMEMBERED];

        fprintf(stderr, " %s(%u, %u)", deed->name, deed->first, deed->count);
    }
    fprintf(stderr, "\n");
}

static void compare(struct player *player, const struct block *block, const uint32_t *found,
                    uint32_t first, uint32_t count, uint32_t pace)
{
    for (uint32_t i = 0; i < count; i += pace)
        if (found[i] != block->expected[first + i])
            count_difference(player, block, first + i, found[i]);
}

static uint32_t *words_of(const struct block *block)
{
    return (uint32_t *)(uintptr_t)block->address;
}

static void attach(struct player *player, struct block *block, unsigned how)
{
    MUST(cuStreamAttachMemAsync(player->stream, block->address, 0, how));
    MUST(cuStreamSynchronize(player->stream));
    block->attached = how;
}

static void renew(struct player *player, struct block *block)
{
    static const uint32_t sizes[] = {1, 700, 1024, 5000, 60000, 400000};

    if (block->address) {
        MUST(cuStreamSynchronize(player->stream));
        MUST(cuMemFree_v2(block->address));
    }
    free(block->expected);
    block->count = sizes[below(player, 6)];
    block->expected = calloc(block->count, 4);
    MUST(cuMemAllocManaged(&block->address, block->count * 4, CU_MEM_ATTACH_HOST));
    memset(words_of(block), 0, block->count * 4);
    attach(player, block, CU_MEM_ATTACH_SINGLE);
}

struct part {
    struct block *block;
    uint32_t first, count;
};

static void write_part(struct player *player, const struct part *part)
{
    uint32_t pace = below(player, 3) ? 1 : 1000;

    MUST(cuStreamSynchronize(player->stream));
    for (uint32_t i = part->first; i < part->first + part->count; i += pace)
        words_of(part->block)[i] = part->block->expected[i] = below(player, 1000000);
}

static void read_part(struct player *player, const struct part *part)
{
    uint32_t pace = below(player, 3) ? 1 : 1000;

    MUST(cuStreamSynchronize(player->stream));
    compare(player, part->block, words_of(part->block) + part->first, part->first, part->count,
            pace);
}

static void add_to_part(struct player *player, const struct part *part)
{
    CUdeviceptr address = part->block->address + part->first * 4;
    uint32_t value = below(player, 1000), count = part->count, turns = below(player, 2) ? 0 : 50;
    void *parameters[] = {&address, &value, &count, &turns};

    if (part->block->attached == CU_MEM_ATTACH_HOST)
        attach(player, part->block, CU_MEM_ATTACH_SINGLE);
    MUST(cuLaunchKernel(get_kernel(kernels, "slow_add"), 4, 1, 1, 64, 1, 1, 0, player->stream,
                        parameters, NULL));
    for (uint32_t i = part->first; i < part->first + part->count; i++)
        part->block->expected[i] += value;
}

static void copy_part(struct player *player, const struct part *part)
{
    uint32_t *own = malloc(part->count * 4), *expected = part->block->expected + part->first;
    CUdeviceptr address = part->block->address + part->first * 4;

    MUST(cuMemcpyDtoHAsync_v2(own, address, part->count * 4, player->stream));
    MUST(cuStreamSynchronize(player->stream));
    compare(player, part->block, own, part->first, part->count, 1);
    for (uint32_t i = 0; i < part->count; i++)
        own[i] = expected[i] = i;
    MUST(cuMemcpyHtoDAsync_v2(address, own, part->count * 4, player->stream));
    MUST(cuMemsetD32Async(address, 77, 1, player->stream));
    expected[0] = 77;
    MUST(cuStreamSynchronize(player->stream));
    free(own);
}

static void prefetch_part(struct player *player, const struct part *part)
{
    CUdevice where = below(player, 2) ? device : CU_DEVICE_CPU;

    MUST(cuMemPrefetchAsync(part->block->address + part->first * 4, part->count * 4, where,
                            player->stream));
}

static void advise_part(struct player *player, const struct part *part)
{
    MUST(cuMemAdvise(part->block->address, part->block->count * 4,
                     CU_MEM_ADVISE_SET_READ_MOSTLY + below(player, 6), device));
}

/* What is discarded is written again. Directly on an H200 (driver 580.159.04) host and kernels use
 * memory at the same time. There the writes of the memset are lost now and then, in memory with
 * advice, and the old contents are back. */
static void discard_part(struct player *player, const struct part *part)
{
    CUdeviceptr address = part->block->address + part->first * 4;
    size_t size = part->count * 4;

    if (discards)
        MUST(cuMemDiscardBatchAsync(&address, &size, 1, 0, player->stream));
    MUST(cuMemsetD32Async(address, part->count, part->count, player->stream));
    for (uint32_t i = part->first; i < part->first + part->count; i++)
        part->block->expected[i] = part->count;
}

static void change_attachment(struct player *player, const struct part *part)
{
    attach(player, part->block, below(player, 2) ? CU_MEM_ATTACH_HOST : CU_MEM_ATTACH_SINGLE);
}

/* A child has nothing to do with the memory, and its parent goes on meanwhile. */
static void fork_beside(struct player *player, const struct part *part)
{
    pid_t child;
    int status;

    if (below(player, 8))
        return;
    child = fork();
    if (child == 0)
        _exit(7);
    read_part(player, part);
    write_part(player, part);
    player->wrong += waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7;
}

static void renew_part(struct player *player, const struct part *part)
{
    if (below(player, 3) == 0)
        renew(player, part->block);
}

static void play_once(struct player *player)
{
    static const struct {
        const char *name;
        void (*play)(struct player *, const struct part *);
    } moves[] = {
        {"write", write_part},         {"write", write_part},   {"read", read_part},
        {"read", read_part},           {"add", add_to_part},    {"add", add_to_part},
        {"add", add_to_part},          {"copy", copy_part},     {"prefetch", prefetch_part},
        {"prefetch", prefetch_part},   {"advise", advise_part}, {"discard", discard_part},
        {"attach", change_attachment}, {"fork", fork_beside},   {"renew", renew_part},
    };
    struct block *block = &player->blocks[below(player, BLOCKS)];
    uint32_t first = below(player, block->count);
    const struct part part = {block, first, below(player, block->count - first) + 1};

    unsigned move = below(player, sizeof(moves) / sizeof(*moves));

    remember(block, moves[move].name, part.first, part.count);
    moves[move].play(player, &part);
}

static void *play(void *argument)
{
    struct player *player = argument;

    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&player->stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < BLOCKS; i++)
        renew(player, &player->blocks[i]);
    for (unsigned i = 0; i < rounds; i++)
        play_once(player);
    MUST(cuStreamSynchronize(player->stream));
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct block *block = &player->blocks[i];

        compare(player, block, words_of(block), 0, block->count, 1);
        MUST(cuMemFree_v2(block->address));
        free(block->expected);
    }
    MUST(cuStreamDestroy_v2(player->stream));
    return NULL;
}

static uint64_t seed = 5;

static void threads_play_side_by_side(void)
{
    struct player players[THREADS];
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        players[i] = (struct player){.random = seed * THREADS + i};
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        IS_TRUE(players[i].wrong == 0);
    }
}

static void one_thread_plays_alone(void)
{
    struct player player = {.random = seed};

    play(&player);
    IS_TRUE(player.wrong == 0);
}

static bool can_rely_on_discards(void)
{
    char name[100];
    int concurrent;

    MUST(cuDeviceGetName(name, sizeof(name), device));
    MUST(cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device));
    return !concurrent || strstr(name, "Software");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        rounds = (unsigned)strtoul(argv[2], NULL, 10);
    device = check_open();
    kernels = load_kernels();
    discards = can_rely_on_discards();
    MUST(cuCtxGetCurrent(&context));
    RUN(one_thread_plays_alone);
    RUN(threads_play_side_by_side);
    return check_close();
}
