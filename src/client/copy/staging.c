/* SPDX-License-Identifier: Apache-2.0 */
/* The client's staging slots: staging_ring.c with a lock, and with waiting. */
#include "staging.h"

#include <string.h>

#include "cleanup.h"
#include "client.h"
#include "client_call.h"
#include "staging_ring.h"

static struct staging {
    pthread_mutex_t lock;
    pthread_cond_t given;
    struct staging_ring ring;
} staging;

void staging_init(void)
{
    memset(&staging, 0, sizeof(staging));
    pthread_mutex_init(&staging.lock, NULL);
    pthread_cond_init(&staging.given, NULL);
    staging.ring.count = client->staging_slots;
}

/* The thread that gives a slot may have to move the client to another server first. */
static void await_slot_locked(void)
{
    call_park();
    pthread_cond_wait(&staging.given, &staging.lock);
    pthread_mutex_unlock(&staging.lock);
    call_unpark_when_open();
    pthread_mutex_lock(&staging.lock);
}

CUresult staging_take(unsigned *ret_slot)
{
    bool must_wait;
    unsigned slot;
    CUresult result;

    pthread_mutex_lock(&staging.lock);
    while (!staging_ring_take(&staging.ring, fence_passed, &slot, &must_wait))
        await_slot_locked();
    pthread_mutex_unlock(&staging.lock);
    if (must_wait) {
        result = fence_wait(staging.ring.fence[slot], 0, FENCE_SPIN);
        if (result != CUDA_SUCCESS) {
            staging_give(slot, NULL);
            return result;
        }
    }
    *ret_slot = slot;
    return CUDA_SUCCESS;
}

bool staging_try_take(unsigned *ret_slot)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&staging.lock);
    bool must_wait;

    if (!staging_ring_take(&staging.ring, fence_passed, ret_slot, &must_wait))
        return false;
    if (!must_wait)
        return true;
    staging.ring.taken[*ret_slot] = false;
    return false;
}

void staging_give(unsigned slot, const struct fence *fence)
{
    pthread_mutex_lock(&staging.lock);
    staging_ring_give(&staging.ring, slot, fence);
    pthread_cond_signal(&staging.given);
    pthread_mutex_unlock(&staging.lock);
}

uint64_t staging_address(unsigned slot)
{
    return client->staging_address + (uint64_t)slot * GPU_REGION_STAGING_SLOT_SIZE;
}
