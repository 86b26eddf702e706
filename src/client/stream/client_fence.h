/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fence words: the GPU writes a stream's sequence number to its word behind the work, and a thread
 * that waits polls the word. Numbers only grow; they are compared by signed difference, so they may
 * wrap. A word that passes to another stream continues from its value.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_result.h"

#define FENCE_NONE UINT32_MAX

struct fence {
    uint32_t word;
    uint32_t seq;
};

/* A fence that has passed. */
#define FENCE_OF_NOTHING ((struct fence){.word = FENCE_NONE})

/* Pure: whether a word that reads `value` has reached `seq`. */
static inline bool fence_reached(uint32_t value, uint32_t seq)
{
    return (int32_t)(value - seq) >= 0;
}

/* Called once while attaching: 0 or -ENOMEM. */
int fence_init(void);

/* A word for a new stream of the device with this ordinal, or FENCE_NONE when all are in use. The
 * contexts that wait for the stream are told by their ids: its own, and for a green one the primary
 * one. */
uint32_t fence_word_take(int device, uint64_t context, uint64_t primary);

/* The stream is gone. Its word is reused when the last number that was issued has arrived. */
void fence_word_give(uint32_t word);

/* The number of a word that will be issued next; the caller holds the channel lock. */
uint32_t fence_next(uint32_t word);

/* Issues it; likewise. */
uint32_t fence_issue(uint32_t word);

/* The number issued last. */
uint32_t fence_issued(uint32_t word);

/* Whether every number issued for a word so far has arrived. */
bool fence_word_idle(uint32_t word);

/* Whether the number has arrived: one load. Takes no lock. */
bool fence_passed(struct fence fence);

/* A fence as one number, and back. */
static inline uint64_t fence_pack(struct fence fence)
{
    return (uint64_t)fence.word << 32 | fence.seq;
}

static inline struct fence fence_unpack(uint64_t packed)
{
    return (struct fence){.word = (uint32_t)(packed >> 32), .seq = (uint32_t)packed};
}

enum fence_wait_mode {
    FENCE_SPIN,  /* spin for a while before sleeping */
    FENCE_SLEEP, /* sleep at once (CU_CTX_SCHED_BLOCKING_SYNC) */
};

/* Waits for a fence, and writes device printf output that has arrived. `stream` is the handle of
 * the word's stream, by which the server wakes the thread; 0 = poll. Returns early, with the error,
 * when the fence will never pass. The library may change under the caller (recovery_hook.h), which
 * reads everything anew. */
CUresult fence_wait(struct fence fence, uint64_t stream, enum fence_wait_mode mode);

/* The same for a call of the program that waits. In a trace the wait stands on the line of the
 * calling thread. That thread is inside the library and does not hold the channel's lock. */
CUresult fence_wait_traced(struct fence fence, uint64_t stream, enum fence_wait_mode mode);

/* Waits for every number issued so far for the device with this ordinal, also of streams that are
 * gone. */
CUresult fence_wait_device(int device);

/* Waits for every number issued to streams of the context with this id, or of green ones of it,
 * that are gone. */
CUresult fence_wait_orphans(uint64_t context);

/* Whether every number issued to streams that are gone has arrived. */
bool fence_orphans_passed(void);

/* Whether every number issued for the device with this ordinal has arrived. */
bool fence_device_idle(int device);
