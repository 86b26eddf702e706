/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast this machine's cores copy into and out of staging slots. It uses every variant that the
 * client library knows, and one to three threads. That rate bounds a copy of pageable memory,
 * without a GPU.
 *
 *   copy_rate [MIB]
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "copy_team.h"
#include "streaming_copy.h"

#define SLOT (1u << 20)
#define SLOTS 16u
#define ROUNDS 8u

struct job {
    void (*copy)(void *, const void *, size_t);
    unsigned char *slots, *memory;
    unsigned chunks;
    atomic_uint next;
    bool upload;
};

static void copy_chunks(void *context)
{
    struct job *job = context;
    unsigned at;

    while ((at = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->chunks) {
        unsigned char *slot = job->slots + at % SLOTS * SLOT;
        unsigned char *memory = job->memory + (size_t)at * SLOT;

        job->copy(job->upload ? slot : memory, job->upload ? memory : slot, SLOT);
    }
}

static double gigabytes_per_second(struct job job, unsigned helpers)
{
    uint64_t best = UINT64_MAX;

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t begin = clock_ns(), spent;

        job.next = 0;
        copy_team_run(helpers, copy_chunks, &job, NULL);
        spent = clock_ns() - begin;
        best = spent < best ? spent : best;
    }
    return (double)job.chunks * SLOT / (double)best;
}

static void show_variant(const struct copy_variant *variant, struct job job)
{
    job.copy = variant->copy;
    for (int up = 1; up >= 0; up--) {
        job.upload = up;
        printf("%-8s %-5s", variant->name, up ? "up" : "down");
        for (unsigned helpers = 0; helpers <= 2; helpers++)
            printf("  %d threads %6.1f GB/s", helpers + 1, gigabytes_per_second(job, helpers));
        printf("\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    unsigned mib = argc > 1 ? (unsigned)atoi(argv[1]) : 64;
    struct job job = {.chunks = mib};
    const struct copy_variant *variants;
    unsigned count = copy_variants(&variants);

    job.slots = mmap(NULL, SLOTS * SLOT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    job.memory = malloc((size_t)mib * SLOT);
    if (job.slots == MAP_FAILED || !job.memory || mib == 0)
        return 1;
    memset(job.slots, 1, SLOTS * SLOT);
    memset(job.memory, 2, (size_t)mib * SLOT);
    copy_team_init();
    for (unsigned variant = 0; variant < count; variant++)
        show_variant(&variants[variant], job);
    free(job.memory);
    return 0;
}
