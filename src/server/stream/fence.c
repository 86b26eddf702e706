/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes fences, and wakes the client's threads that sleep on them.
 *
 * The GPU writes words but wakes no thread. A client thread that wants to sleep on its fence sends
 * fnWake, and the server wakes it from a host function behind the fence. Of the ways to get a
 * notification from a GPU this is the one in which a short wait never queues behind a long one. A
 * thread that sleeps polls from time to time anyway, so a lost wake costs only time.
 */
#include "fence.h"

#include <limits.h>
#include <stdatomic.h>

#include "futex.h"
#include "server_dispatch.h"
#include "stream_state.h"
#include "window.h"

uint32_t fence_value(const struct stream *stream)
{
    return atomic_load_explicit(stream->fence, memory_order_acquire);
}

void fence_write_now(const struct stream *stream, uint32_t seq)
{
    atomic_store_explicit(stream->fence, seq, memory_order_release);
    futex_wake(stream->fence, INT_MAX);
}

void fence_expect_work(struct stream *stream)
{
    atomic_store_explicit(&stream->in_flight->unfenced, 1, memory_order_relaxed);
}

void fence_expect(struct stream *stream, uint32_t seq)
{
    print_checkpoint_fence(stream, seq);
    atomic_store_explicit(&stream->in_flight->promised, seq, memory_order_relaxed);
    atomic_store_explicit(&stream->in_flight->unfenced, 0, memory_order_relaxed);
}

uint32_t fence_expected(const struct stream *stream)
{
    return stream->in_flight->promised;
}

static bool is_pending(const struct in_flight *in_flight, const _Atomic uint32_t *fence)
{
    uint32_t promised = atomic_load_explicit(&in_flight->promised, memory_order_relaxed);

    return atomic_load_explicit(&in_flight->unfenced, memory_order_relaxed) ||
           (promised &&
            (int32_t)(atomic_load_explicit(fence, memory_order_acquire) - promised) < 0);
}

bool fence_pending(const struct stream *stream)
{
    return is_pending(stream->in_flight, stream->fence);
}

bool fence_any_pending(const struct session *session)
{
    for (uint32_t word = 0; word < GPU_REGION_FENCES; word++) {
        if (is_pending(&session->streams->in_flight[word], window_fence(session->window, word)))
            return true;
    }
    return false;
}

CUresult fence_write(struct stream *stream, uint32_t seq)
{
    fence_expect(stream, seq);
    if (!stream->driver && stream->session->server->faulted)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!stream->driver) {
        fence_write_now(stream, seq);
        return CUDA_SUCCESS;
    }
    return driver.cuStreamWriteValue32_v2(stream->driver, (uintptr_t)stream->fence, seq, 0);
}

bool fence_word_reached(const struct stream *stream, uint32_t seq)
{
    return (int32_t)(fence_value(stream) - seq) >= 0;
}

/* On a thread of the driver. The word stays mapped as long as the window, which is never
 * unmapped. */
static void CUDA_CB wake_sleepers(void *word)
{
    futex_wake(word, INT_MAX);
}

CUresult serve_fnWake(struct session *session, const struct wire_fnWake *in, struct stream *hStream)
{
    if (fence_word_reached(hStream, in->seq)) {
        futex_wake(hStream->fence, INT_MAX);
        return CUDA_SUCCESS;
    }
    CUresult result = session_enter(session, hStream->device);
    if (result == CUDA_SUCCESS)
        result = driver.cuLaunchHostFunc(hStream->driver, wake_sleepers, hStream->fence);
    return result;
}
