/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuLaunchHostFunc and cuStreamWaitValue, which make a stream wait for its client, and
 * cuStreamWriteValue.
 */
#include "host_wait.h"

#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "memory.h"
#include "quiesce.h"
#include "quota.h"
#include "server_dispatch.h"
#include "spare_events.h"
#include "stream_state.h"
#include "window.h"

/* How many streams of one device a client may have wait in callbacks. With all queues of a context
 * taken by such streams (32 are asked for), every other stream was measured to stand still. */
#define HELD_STREAMS_MAX 4u
#define HELD_TIMEOUT_NS (2 * NS_PER_SEC)

/* How many callbacks of a stream may wait in the driver while the client's fences are deferred. A
 * full queue blocks its caller, which may hold the driver's own lock then, and the thread that
 * writes deferred fences needs that lock. */
#define CALLBACKS_AHEAD_MAX 128u

/* How often all waits are ended plainly when a client has gone, before it is assumed that some
 * exclude each other. */
#define PLAIN_ROUNDS 4u

struct host_wait {
    struct list link;
    const struct device *device;
    uint64_t address, value;
    unsigned flags;
    bool wide;      /* 64 bits */
    CUevent passed; /* recorded behind it */
};

static uint32_t load_host_wait_word(const struct session *session, uint32_t word)
{
    return __atomic_load_n(window_host_wait_word(session->window, word), __ATOMIC_ACQUIRE);
}

/* Whether the stream waits at a host-wait word that its client has not written. */
static bool is_waiting_for_host(const struct stream *stream)
{
    const struct session *session = stream->session;

    return stream->waits_for_host && fence_reached(stream, stream->host_wait_fence) &&
           (int32_t)(load_host_wait_word(session, stream->host_wait_word) - stream->host_wait_seq) <
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

static bool is_too_far_ahead(const struct stream *stream)
{
    const struct session *session = stream->session;

    return fences_are_deferred(session) && stream->waits_for_host &&
           stream->host_wait_seq - load_host_wait_word(session, stream->host_wait_word) >
               CALLBACKS_AHEAD_MAX;
}

/* Blocks this session's thread until its client has written some words. There is a timeout, because
 * what makes the client write them may be a command behind this one. */
static void throttle(const struct stream *stream)
{
    const struct timespec pause = {.tv_nsec = 200 * NS_PER_US};
    uint64_t deadline = clock_ns() + HELD_TIMEOUT_NS;
    struct session *session = stream->session;

    while ((is_too_far_ahead(stream) ||
            count_waiting(session, (unsigned)stream->device->ordinal) >= HELD_STREAMS_MAX) &&
           !session->stop && clock_ns() < deadline)
        nanosleep(&pause, NULL);
}

static void keep_record(const struct stream *stream, struct stream_wait *wait, CUresult result)
{
    if (result == CUDA_SUCCESS)
        quiesce_wait_record(wait, stream->driver);
    else
        quiesce_wait_drop(wait);
}

/* The wait is recorded also where the client alone ends it: a client that never does would stop
 * every call that waits for all streams, and with it all clients. */
static CUresult wait_for_value(const struct stream *stream, uint64_t address, uint32_t value,
                               unsigned flags)
{
    quiesce_wait_begin(stream->device->quiesce);
    struct stream_wait *wait =
        quiesce_wait_expect(stream->device, stream->driver, stream->session->id);
    CUresult result = driver.cuStreamWaitValue32_v2(stream->driver, address, value, flags);
    keep_record(stream, wait, result);
    quiesce_wait_end(stream->device->quiesce);
    return result;
}

/* The client writes the word when it has seen the fence. Mostly the GPU writes that, but deferred
 * fences are written after calls of the driver (fence.h). */
static CUresult wait_for_host(struct stream *stream, const struct wire_cuLaunchHostFunc *in)
{
    struct session *session = stream->session;

    session->streams->has_host_waits = true;
    CUresult result = fence_write(stream, in->seq);

    if (result != CUDA_SUCCESS)
        return result;
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
        return stream_end(hStream, in->seq, CUDA_ERROR_INVALID_VALUE);
    }
    throttle(hStream);
    CUresult result = stream_begin(hStream);
    if (result == CUDA_SUCCESS)
        result = wait_for_host(hStream, in);
    return stream_end(hStream, result == CUDA_SUCCESS ? 0 : in->seq, result);
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
        result = stream_begin(hStream);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWriteValue32_v2(hStream->driver, in->addr, in->value, in->flags);
    return stream_end(hStream, in->seq, result);
}

CUresult serve_cuStreamWriteValue64_v2(struct session *session,
                                       const struct wire_cuStreamWriteValue64_v2 *in,
                                       struct stream *hStream)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_word(session, "cuStreamWriteValue64", in->addr, 8))
        result = stream_begin(hStream);
    if (result == CUDA_SUCCESS && !driver.cuStreamWriteValue64_v2)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWriteValue64_v2(hStream->driver, in->addr, in->value, in->flags);
    return stream_end(hStream, in->seq, result);
}

static void forget_wait(struct session *session, struct host_wait *wait)
{
    list_remove(&wait->link);
    session->streams->host_wait_count--;
    quota_give(session, QUOTA_WAITS, 1);
    if (wait->passed)
        spare_event_keep(wait->device, wait->passed);
    free(wait);
}

/* Streams pass their waits in any order, so each call looks at two and puts those that go on
 * behind the others: what is kept does not exceed twice what is needed. */
static void forget_passed(struct session *session, unsigned looks)
{
    struct list *waits = &session->streams->host_waits;

    while (looks-- && !list_empty(waits)) {
        struct host_wait *wait = list_first(waits, struct host_wait, link);
        if (!wait->passed || driver.cuEventQuery(wait->passed) != CUDA_ERROR_NOT_READY) {
            forget_wait(session, wait);
            continue;
        }
        list_remove(&wait->link);
        list_append(waits, &wait->link);
    }
}

/* No value of the word ends such a wait: no bit is asked for, or no bit of zero is. */
static bool can_never_end(uint64_t value, unsigned flags, bool wide)
{
    uint64_t all = wide ? UINT64_MAX : UINT32_MAX;

    flags &= ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
    return (flags == CU_STREAM_WAIT_VALUE_AND && value == 0) ||
           (flags == CU_STREAM_WAIT_VALUE_NOR && value == all);
}

static CUresult check_wait(struct session *session, uint64_t value, unsigned flags, bool wide)
{
    if (can_never_end(value, flags, wide)) {
        session_log_error(session, "cuStreamWaitValue: no value ends this wait");
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned count = session->streams->host_wait_count;
    forget_passed(session, count < quota(QUOTA_WAITS) ? 2 : count);
    return quota_allows(session, QUOTA_WAITS, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult record_wait(struct stream *stream, uint64_t address, uint64_t value, unsigned flags,
                            bool wide, struct host_wait **ret_wait)
{
    struct session *session = stream->session;
    CUresult result = check_wait(session, value, flags, wide);
    struct host_wait *wait = result == CUDA_SUCCESS ? calloc(1, sizeof(*wait)) : NULL;

    if (!wait)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
    *wait = (struct host_wait){.device = stream->device,
                               .address = address,
                               .value = value,
                               .flags = flags & ~CU_STREAM_WAIT_VALUE_FLUSH,
                               .wide = wide};
    list_append(&session->streams->host_waits, &wait->link);
    session->streams->host_wait_count++;
    quota_add(session, QUOTA_WAITS, 1);
    session->streams->has_host_waits = true;
    result = spare_event_take(stream->device, &wait->passed);
    if (result != CUDA_SUCCESS)
        forget_wait(session, wait);
    *ret_wait = wait;
    return result;
}

CUresult serve_cuStreamWaitValue32_v2(struct session *session,
                                      const struct wire_cuStreamWaitValue32_v2 *in,
                                      struct stream *hStream)
{
    struct host_wait *wait = NULL;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_word(session, "cuStreamWaitValue32", in->addr, 4))
        result = stream_begin(hStream);
    if (result == CUDA_SUCCESS)
        result = record_wait(hStream, in->addr, in->value, in->flags, false, &wait);
    if (result == CUDA_SUCCESS)
        result = wait_for_value(hStream, in->addr, in->value, in->flags);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(wait->passed, hStream->driver);
    return stream_end(hStream, in->seq, result);
}

static CUresult wait_for_wide_value(const struct stream *stream,
                                    const struct wire_cuStreamWaitValue64_v2 *in)
{
    quiesce_wait_begin(stream->device->quiesce);
    struct stream_wait *wait =
        quiesce_wait_expect(stream->device, stream->driver, stream->session->id);
    CUresult result = driver.cuStreamWaitValue64_v2(stream->driver, in->addr, in->value, in->flags);
    keep_record(stream, wait, result);
    quiesce_wait_end(stream->device->quiesce);
    return result;
}

CUresult serve_cuStreamWaitValue64_v2(struct session *session,
                                      const struct wire_cuStreamWaitValue64_v2 *in,
                                      struct stream *hStream)
{
    struct host_wait *wait = NULL;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (check_word(session, "cuStreamWaitValue64", in->addr, 8))
        result = stream_begin(hStream);
    if (result == CUDA_SUCCESS &&
        (!driver.cuStreamWaitValue64_v2 || !driver.cuStreamWriteValue64_v2))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = record_wait(hStream, in->addr, in->value, in->flags, true, &wait);
    if (result == CUDA_SUCCESS)
        result = wait_for_wide_value(hStream, in);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(wait->passed, hStream->driver);
    return stream_end(hStream, in->seq, result);
}

/* A value that ends the wait, whatever the word holds: NOR wants a bit that neither side has. */
static uint64_t value_that_ends(const struct host_wait *wait)
{
    return wait->flags == CU_STREAM_WAIT_VALUE_NOR ? 0 : wait->value;
}

/* The GPU writes it, on a stream that never waits, because the word may be in device memory. */
static void write_awaited(struct session *session, const struct host_wait *wait)
{
    uint64_t value = value_that_ends(wait);

    /* It may have been given back, and belong to another client by now. */
    if (!memory_covers(session, wait->address, wait->wide ? 8 : 4) ||
        session_enter(session, wait->device) != CUDA_SUCCESS)
        return;
    if (wait->wide)
        driver.cuStreamWriteValue64_v2(wait->device->watch, wait->address, value, 0);
    else
        driver.cuStreamWriteValue32_v2(wait->device->watch, wait->address, (uint32_t)value, 0);
}

/* A client may make streams wait for values of one word that are more than half a circle apart:
 * then no value ends all waits. A quarter of a circle further in each round, every wait ends in
 * one. */
static void release_host_wait_words(struct session *session, unsigned round)
{
    uint32_t turn = round > PLAIN_ROUNDS ? (round - PLAIN_ROUNDS) << 30 : 0;

    for (uint32_t word = 0; word < GPU_REGION_HOST_WAITS; word++) {
        uint32_t seq = session->streams->host_wait_seq[word] + turn;
        if (turn || (int32_t)(seq - load_host_wait_word(session, word)) > 0)
            __atomic_store_n(window_host_wait_word(session->window, word), seq, __ATOMIC_RELEASE);
    }
}

bool host_waits_in(struct session *session, uint64_t address, uint64_t size)
{
    if (session->streams->host_wait_count)
        forget_passed(session, session->streams->host_wait_count);
    list_for_each (struct host_wait, wait, &session->streams->host_waits, link) {
        if (wait->address - address < size)
            return true;
    }
    return false;
}

bool host_waits_exist(const struct session *session)
{
    return session->streams->has_host_waits;
}

/* Two streams may wait for different values of one word: the last one that is written stays until
 * the next round, so each becomes the last in turn. */
void host_waits_release_all(struct session *session)
{
    struct list *waits = &session->streams->host_waits;

    release_host_wait_words(session, session->streams->release_rounds++);
    list_for_each (struct host_wait, wait, waits, link) {
        write_awaited(session, wait);
    }
    forget_passed(session, 1);
}

void host_waits_forget_all(struct session *session)
{
    list_for_each_safe (struct host_wait, wait, &session->streams->host_waits, link)
        forget_wait(session, wait);
}
