/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuLaunchHostFunc and cuStreamWaitValue, which make a stream wait for its client, and
 * cuStreamWriteValue.
 */
#include "host_wait.h"

#include <time.h>

#include "clock.h"
#include "gate.h"
#include "host_wait_record.h"
#include "memory.h"
#include "server_dispatch.h"
#include "stream_state.h"
#include "window.h"

/* How many streams of one device a client may have wait in callbacks. With all queues of a context
 * taken by such streams (32 are asked for), every other stream was measured to stand still. */
#define HELD_STREAMS_MAX 4u
#define HELD_TIMEOUT_NS (2 * NS_PER_SEC)

/* Whether the stream waits at a host-wait word that its client has not written. */
static bool is_waiting_for_host(const struct stream *stream)
{
    const struct session *session = stream->session;

    return stream->waits_for_host && fence_word_reached(stream, stream->host_wait_fence) &&
           (int32_t)(host_wait_word_load(session, stream->host_wait_word) - stream->host_wait_seq) <
               0;
}

static unsigned count_waiting(const struct session *session, unsigned device)
{
    unsigned held = 0;

    list_for_each (struct stream, stream, &session->streams->of_device[device], link) {
        held += is_waiting_for_host(stream);
    }
    return held;
}

/* Blocks this session's thread until its client has written some words. There is a timeout, because
 * what makes the client write them may be a command behind this one. */
static void throttle(const struct stream *stream)
{
    const struct timespec pause = {.tv_nsec = 200 * NS_PER_US};
    uint64_t deadline = clock_ns() + HELD_TIMEOUT_NS;
    struct session *session = stream->session;

    while (count_waiting(session, (unsigned)stream->device->ordinal) >= HELD_STREAMS_MAX &&
           !session->stop && clock_ns() < deadline)
        nanosleep(&pause, NULL);
}

/* The wait is recorded also where the client alone ends it. A client that never does would stop
 * every call that waits for all streams, and with it all clients. A client that is ended before the
 * wait may begin does not get it. The calls that keep it back may wait for its earlier waits. */
static CUresult begin_wait(const struct stream *stream, struct stream_wait **ret_record)
{
    if (!gate_enter(stream->device->gate, &stream->session->stop))
        return CUDA_ERROR_MPS_CLIENT_TERMINATED;
    *ret_record = gate_wait_expect(stream->device, stream->driver, stream->session->id);
    return CUDA_SUCCESS;
}

static CUresult end_wait(const struct stream *stream, struct stream_wait *record, CUresult result)
{
    if (result == CUDA_SUCCESS)
        gate_wait_record(record, stream->driver);
    else
        gate_wait_drop(record);
    gate_leave(stream->device->gate);
    return result;
}

static CUresult wait_for_value(const struct stream *stream, uint64_t address, uint32_t value,
                               unsigned flags)
{
    struct stream_wait *record;
    CUresult result = begin_wait(stream, &record);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuStreamWaitValue32_v2(stream->driver, address, value, flags);
    return end_wait(stream, record, result);
}

/* The client writes the word when it has seen the fence. */
static CUresult wait_for_host(struct stream *stream, const struct wire_cuLaunchHostFunc *in)
{
    struct session *session = stream->session;

    session->streams->has_host_waits = true;
    CUresult result = fence_write(stream, in->seq);

    if (result != CUDA_SUCCESS)
        return result;
    fence_expect_work(stream); /* the wait is behind the fence */
    stream->waits_for_host = true;
    stream->host_wait_word = in->host_wait_word;
    stream->host_wait_seq = in->host_wait_seq;
    stream->host_wait_fence = in->seq;
    session->streams->host_wait_seq[in->host_wait_word] = in->host_wait_seq;
    return wait_for_value(stream,
                          (uintptr_t)window_host_wait_word(session->window, in->host_wait_word),
                          in->host_wait_seq, CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult serve_cuLaunchHostFunc(struct session *session, const struct wire_cuLaunchHostFunc *in,
                                struct stream *hStream)
{
    if (in->host_wait_word >= GPU_REGION_HOST_WAITS) {
        session_log_error(session, "cuLaunchHostFunc: host-wait word %u, there are %u",
                          in->host_wait_word, GPU_REGION_HOST_WAITS);
        return stream_end_work(hStream, in->seq, CUDA_ERROR_INVALID_VALUE);
    }
    throttle(hStream);
    CUresult result = stream_begin_brief(hStream);
    if (result == CUDA_SUCCESS)
        result = wait_for_host(hStream, in);
    return stream_end_work(hStream, result == CUDA_SUCCESS ? 0 : in->seq, result);
}

static bool check_word(struct session *session, const char *call, uint64_t address, unsigned size)
{
    if (address % size == 0 && memory_covers(session, address, size))
        return true;
    session_log_error(session, "%s: %u bytes at %#llx are not the client's, or not aligned", call,
                      size, (unsigned long long)address);
    return false;
}

CUresult serve_cuStreamWriteValue32_v2(struct session *session,
                                       const struct wire_cuStreamWriteValue32_v2 *in,
                                       struct stream *hStream)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_word(session, "cuStreamWriteValue32", in->addr, 4))
        result = stream_begin_brief(hStream);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWriteValue32_v2(hStream->driver, in->addr, in->value, in->flags);
    return stream_end_work(hStream, in->seq, result);
}

CUresult serve_cuStreamWriteValue64_v2(struct session *session,
                                       const struct wire_cuStreamWriteValue64_v2 *in,
                                       struct stream *hStream)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_word(session, "cuStreamWriteValue64", in->addr, 8))
        result = stream_begin_brief(hStream);
    if (result == CUDA_SUCCESS && !driver.cuStreamWriteValue64_v2)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWriteValue64_v2(hStream->driver, in->addr, in->value, in->flags);
    return stream_end_work(hStream, in->seq, result);
}

CUresult serve_cuStreamWaitValue32_v2(struct session *session,
                                      const struct wire_cuStreamWaitValue32_v2 *in,
                                      struct stream *hStream)
{
    struct host_wait *wait = NULL;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_word(session, "cuStreamWaitValue32", in->addr, 4))
        result = stream_begin_brief(hStream);
    if (result == CUDA_SUCCESS)
        result = host_wait_record(hStream, in->addr, in->value, in->flags, false, &wait);
    if (result == CUDA_SUCCESS)
        result = wait_for_value(hStream, in->addr, in->value, in->flags);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(wait->passed, hStream->driver);
    return stream_end_work(hStream, in->seq, result);
}

static CUresult wait_for_wide_value(const struct stream *stream,
                                    const struct wire_cuStreamWaitValue64_v2 *in)
{
    struct stream_wait *record;
    CUresult result = begin_wait(stream, &record);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuStreamWaitValue64_v2(stream->driver, in->addr, in->value, in->flags);
    return end_wait(stream, record, result);
}

CUresult serve_cuStreamWaitValue64_v2(struct session *session,
                                      const struct wire_cuStreamWaitValue64_v2 *in,
                                      struct stream *hStream)
{
    struct host_wait *wait = NULL;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_word(session, "cuStreamWaitValue64", in->addr, 8))
        result = stream_begin_brief(hStream);
    if (result == CUDA_SUCCESS &&
        (!driver.cuStreamWaitValue64_v2 || !driver.cuStreamWriteValue64_v2))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = host_wait_record(hStream, in->addr, in->value, in->flags, true, &wait);
    if (result == CUDA_SUCCESS)
        result = wait_for_wide_value(hStream, in);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(wait->passed, hStream->driver);
    return stream_end_work(hStream, in->seq, result);
}
