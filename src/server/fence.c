/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing fences, and waking those who sleep on them.
 *
 * The GPU writes words but wakes nobody. A client thread that wants to sleep on its fence says so
 * with fnWake, and the server wakes it from a host function behind the fence: of the ways to hear
 * from a GPU that is the one in which a short wait never stands behind a long one. Whoever sleeps
 * looks again from time to time anyway, so a wake that is lost costs time and no more.
 */
#include "fence.h"

#include <limits.h>

#include "futex.h"
#include "launch_batch.h"
#include "server.h"
#include "server_dispatch.h"

uint32_t fence_value(const struct window *window, uint32_t word)
{
    return __atomic_load_n(window_fence(window, word), __ATOMIC_ACQUIRE);
}

void fence_expect_work(struct stream *stream)
{
    struct in_flight *note = &stream->session->in_flight[stream->word];

    __atomic_store_n(&note->unfenced, 1, __ATOMIC_RELAXED);
}

void fence_expect(struct stream *stream, uint32_t seq)
{
    struct in_flight *note = &stream->session->in_flight[stream->word];

    __atomic_store_n(&note->promised, seq, __ATOMIC_RELAXED);
    __atomic_store_n(&note->unfenced, 0, __ATOMIC_RELAXED);
}

bool fence_pending(const struct session *session, uint32_t word)
{
    const struct in_flight *note = &session->in_flight[word];
    uint32_t promised = __atomic_load_n(&note->promised, __ATOMIC_RELAXED);

    return __atomic_load_n(&note->unfenced, __ATOMIC_RELAXED) ||
           (promised && (int32_t)(fence_value(session->window, word) - promised) < 0);
}

bool fence_any_pending(const struct session *session)
{
    for (uint32_t word = 0; word < GPU_REGION_FENCES; word++) {
        if (fence_pending(session, word))
            return true;
    }
    return false;
}

CUresult fence_write(struct stream *stream, uint32_t seq)
{
    uintptr_t word = (uintptr_t)window_fence(stream->session->window, stream->word);

    fence_expect(stream, seq);
    if (!stream->driver && stream->session->server->faulted)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!stream->driver) {
        __atomic_store_n((uint32_t *)word, seq, __ATOMIC_RELEASE);
        futex_wake((uint32_t *)word, INT_MAX);
        return CUDA_SUCCESS;
    }
    if (stream->session->printf_output.active && device_printf_fence(stream, seq))
        return CUDA_SUCCESS;
    return driver.cuStreamWriteValue32_v2(stream->driver, word, seq, 0);
}

bool fence_reached(const struct stream *stream, uint32_t seq)
{
    return (int32_t)(fence_value(stream->session->window, stream->word) - seq) >= 0;
}

CUresult serve_fnFence(struct session *session, const struct wire_fnFence *in,
                       struct stream *hStream)
{
    if (launch_batch_fence(session, hStream, in->seq))
        return CUDA_SUCCESS;
    launch_batch_flush(session);
    return stream_end(hStream, in->seq, stream_begin(hStream));
}

/* On a thread of the driver. The word stays mapped as long as the window, which is for ever. */
static void CUDA_CB wake_sleepers(void *word)
{
    futex_wake(word, INT_MAX);
}

CUresult serve_fnWake(struct session *session, const struct wire_fnWake *in, struct stream *hStream)
{
    uint32_t *word = window_fence(session->window, hStream->word);

    if (fence_reached(hStream, in->seq)) {
        futex_wake(word, INT_MAX);
        return CUDA_SUCCESS;
    }
    CUresult result = session_enter(session, hStream->device);
    if (result == CUDA_SUCCESS)
        result = driver.cuLaunchHostFunc(hStream->driver, wake_sleepers, word);
    return result;
}
