/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample of all clients. The first half of the time between two samples is charged by the first
 * sample, the second half by the second.
 */
#include <string.h>

#include "accounting_state.h"
#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "launch_record.h"
#include "sm_share.h"

/* A client that has sent nothing for this time may have work without a fence. Then the thread
 * queries the driver, once in this time. */
#define ASKED_AFTER_NS (15 * NS_PER_MS)

static bool is_sampled(const struct session *session)
{
    return session->phase == SESSION_SERVING && session->accounting;
}

/* ---- sampling ---- */

static uint64_t work_of(const struct session *session)
{
    uint64_t copies, bytes;

    copy_counters(session, &copies, &bytes);
    return launch_count(session) + copies;
}

/* Whether the client has submitted work since the last sample. */
static bool follow_work(struct session_accounting *accounting, uint64_t work, uint64_t interval_ns)
{
    bool moved = work != accounting->work;

    accounting->work = work;
    accounting->quiet_ns = moved ? 0 : accounting->quiet_ns + interval_ns;
    accounting->has_been_asked &= !moved;
    return moved;
}

static bool is_idle(const struct session *session, const struct streams_sample *streams)
{
    unsigned devices = session->server->devices.count;

    return !memchr(streams->has_kernels, true, devices) &&
           !memchr(streams->has_other, true, devices);
}

static void look_at_streams(const struct session *session)
{
    struct session_accounting *accounting = session->accounting;
    struct streams_sample *streams = &accounting->now.streams;
    bool ask = accounting->quiet_ns >= ASKED_AFTER_NS && accounting->last.streams.is_uncertain;

    if (accounting->has_been_asked) {
        *streams = (struct streams_sample){0};
        return;
    }
    if (!streams_sample(session, ask, streams))
        *streams = accounting->last.streams;
    else if (ask && is_idle(session, streams))
        accounting->has_been_asked = true;
    else if (ask)
        accounting->quiet_ns = 0;
}

/* Assumes one block on each multiprocessor, as long as there are enough. */
static void count_sms(struct session *session)
{
    struct server *server = session->server;
    struct client_sample *now = &session->accounting->now;

    for (unsigned i = 0; i < server->devices.count; i++) {
        uint64_t granted = sm_share_granted(server, &session->limits, i);
        uint64_t blocks = now->streams.has_kernels[i] ? now->streams.blocks[i] : 0;
        now->sms[i] = (double)(blocks < granted ? blocks : granted);
    }
}

static bool sample_session(struct session *session, uint64_t interval_ns)
{
    struct session_accounting *accounting = session->accounting;
    bool moved = follow_work(accounting, work_of(session), interval_ns);

    look_at_streams(session);
    count_sms(session);
    accounting->now.queue_bytes = channel_server_queued(session->channel, &accounting->now.taken);
    return moved || accounting->now.queue_bytes || accounting->now.streams.is_uncertain;
}

/* ---- sharing a device out ---- */

/* Where the kernels of all clients need more multiprocessors than the device has, each share is
 * reduced in proportion. */
static void share_device(struct server *server, unsigned device, uint64_t interval_ns)
{
    int all =
        server->devices.device[device].record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    double wanted = 0;
    unsigned clients = 0;

    list_for_each (struct session, session, &server->sessions, link) {
        if (!is_sampled(session))
            continue;
        wanted += session->accounting->now.sms[device];
        clients += session->accounting->now.streams.has_kernels[device];
    }
    counter_add(&server->accounting->kernels_ns[device], clients ? interval_ns : 0);
    counter_add(&server->accounting->shared_ns, clients > 1 ? interval_ns : 0);
    list_for_each (struct session, session, &server->sessions, link) {
        if (!is_sampled(session))
            continue;
        struct client_sample *now = &session->accounting->now;
        now->is_beside[device] = clients > now->streams.has_kernels[device];
        if (wanted > all)
            now->sms[device] *= all / wanted;
    }
}

/* ---- charging ---- */

static void charge_device(struct session_accounting *accounting, unsigned device, uint64_t half_ns)
{
    const struct client_sample *const ends[] = {&accounting->last, &accounting->now};

    for (unsigned i = 0; i < 2; i++) {
        if (!ends[i]->streams.has_kernels[device])
            continue;
        counter_add(&accounting->gpu_ns[device], half_ns);
        counter_add(&accounting->sm_ns[device], (uint64_t)(ends[i]->sms[device] * (double)half_ns));
        if (ends[i]->is_beside[device])
            counter_add(&accounting->shared_ns, half_ns);
    }
}

static bool has_copies(const struct client_sample *sample, unsigned devices)
{
    return memchr(sample->streams.has_other, true, devices) != NULL;
}

static void charge_queue(struct session_accounting *accounting, uint64_t half_ns)
{
    uint64_t bytes = (uint64_t)accounting->last.queue_bytes + accounting->now.queue_bytes;

    counter_add(&accounting->queued_byte_ns, bytes * half_ns >> 10);
    counter_add(&accounting->taken_bytes, accounting->now.taken - accounting->last.taken);
    counter_add(&accounting->queued_ns, accounting->last.queue_bytes ? half_ns : 0);
    counter_add(&accounting->queued_ns, accounting->now.queue_bytes ? half_ns : 0);
    atomic_store_explicit(&accounting->queue_bytes, accounting->now.queue_bytes,
                          memory_order_relaxed);
}

static void charge_interval(struct session *session, uint64_t interval_ns)
{
    struct session_accounting *accounting = session->accounting;
    unsigned devices = session->server->devices.count;
    uint64_t half_ns = interval_ns / 2;

    for (unsigned i = 0; i < devices; i++)
        charge_device(accounting, i, half_ns);
    counter_add(&accounting->copy_ns, has_copies(&accounting->last, devices) ? half_ns : 0);
    counter_add(&accounting->copy_ns, has_copies(&accounting->now, devices) ? half_ns : 0);
    charge_queue(accounting, half_ns);
    accounting->last = accounting->now;
}

bool accounting_round(struct server *server, uint64_t interval_ns)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    bool any = false;

    list_for_each (struct session, session, &server->sessions, link)
        any |= is_sampled(session) && sample_session(session, interval_ns);
    for (unsigned i = 0; i < server->devices.count; i++)
        share_device(server, i, interval_ns);
    list_for_each (struct session, session, &server->sessions, link)
        if (is_sampled(session))
            charge_interval(session, interval_ns);
    return any;
}
