/* SPDX-License-Identifier: Apache-2.0 */
/* See exclusive.h. */
#include "exclusive.h"

#include <errno.h>

#include "batch_pause.h"
#include "capacity.h"
#include "gate.h"
#include "idle.h"
#include "log.h"
#include "server.h"
#include "session.h"
#include "spare_events.h"
#include "suspend.h"

/* A wait that is longer is logged. */
#define LONG_WAIT_NS (1 * NS_PER_SEC)

/* ---- the parts of the contexts ---- */

static bool create_parts(struct device *device)
{
    device->gate = gate_create();
    device->events = spare_events_create();
    device->capacity = capacity_create();
    device->batch_pause = batch_pause_create();
    return device->gate && device->events && device->capacity && device->batch_pause;
}

/* A single gate needs no group. */
static struct gate *join_gates(const struct devices *devices)
{
    struct gate *gates[ATTACH_DEVICES_MAX];
    unsigned count = devices->count;

    for (unsigned i = 0; i < count; i++)
        gates[i] = devices->device[i].gate;
    return count == 1 ? gates[0] : gate_create_group(gates, count);
}

int exclusive_init(struct devices *devices)
{
    for (unsigned i = 0; i < devices->count; i++) {
        if (!create_parts(&devices->device[i]))
            return -ENOMEM;
    }
    devices->gate = join_gates(devices);
    return devices->gate ? 0 : -ENOMEM;
}

void exclusive_fini(struct devices *devices)
{
    if (devices->count != 1)
        gate_destroy(devices->gate);
    for (unsigned i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        batch_pause_destroy(device->batch_pause);
        capacity_destroy(device->capacity);
        spare_events_destroy(device->events);
        gate_destroy(device->gate);
    }
}

/* ---- calls ---- */

/* Only the first line names the remedy, since it is the operator's. */
static void log_wait(const struct session *session, const char *what, uint64_t waited)
{
    static atomic_bool remedy_named;

    log_debug("Client " CLIENT_FORMAT " waited %llu ms for an idle point for %s",
              CLIENT_ARGS(session), (unsigned long long)(waited / NS_PER_MS), what);
    if (waited < LONG_WAIT_NS)
        return;
    session_log_event(session, 0, " waited %.1f s for the kernels of others before %s",
                      (double)waited / NS_PER_SEC, what);
    if (!session->server->asks_for_lanes && !atomic_exchange(&remedy_named, true))
        log_line("With a spare lane programs do not wait for that: funnel start --spare");
}

/* Waiting ends with the session, and possibly before an idle point. */
static CUresult begin_call(struct session *session, const struct device *device, const char *what,
                           struct exclusive_call *call)
{
    struct server *server = session->server;
    uint64_t began = clock_ns();

    idle_await(session, device, call);
    log_wait(session, what, clock_ns() - began);
    CUresult result = idle_is_awaited(server) && session->stop && !call->at_end
                          ? CUDA_ERROR_NOT_READY
                          : gate_close(device->gate, what);
    call->blocks_admission = result == CUDA_SUCCESS;
    if (call->blocks_admission)
        admission_block(server);
    else
        suspend_end(server, call);
    return result;
}

CUresult exclusive_begin(struct session *session, const struct device *device, const char *what,
                         struct exclusive_call *call)
{
    call->count = 0;
    call->at_end = false;
    return begin_call(session, device, what, call);
}

CUresult exclusive_begin_at_end(struct session *session, const struct device *device,
                                const char *what, struct exclusive_call *call)
{
    call->count = 0;
    call->at_end = true;
    return begin_call(session, device, what, call);
}

CUresult exclusive_begin_now(const struct device *device, const char *what,
                             struct exclusive_call *call)
{
    call->count = 0;
    call->blocks_admission = false;
    return gate_close(device->gate, what);
}

void exclusive_await_all(struct session *session, struct exclusive_call *call)
{
    const struct devices *devices = &session->server->devices;

    call->count = 0;
    call->at_end = false;
    for (unsigned i = 0; i < devices->count; i++)
        idle_await(session, &devices->device[i], call);
}

void exclusive_end(struct session *session, const struct device *device,
                   struct exclusive_call *call)
{
    gate_open(device->gate);
    if (call->blocks_admission)
        admission_unblock(session->server);
    if (session)
        suspend_linger(session->server, call);
}
