/* SPDX-License-Identifier: Apache-2.0 */
/* The stream subsystem knows which moment is calm; server.h has a function for that. */
#include "calm.h"

#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "quiesce.h"
#include "server.h"
#include "session.h"

#define REST_PAUSE_NS (20 * NS_PER_US)

/* A call beside which no client begins takes some milliseconds. */
#define ADMIT_PAUSE_NS (100 * NS_PER_US)
#define ADMIT_TIMEOUT_NS (1 * NS_PER_SEC)

/* A wait that is longer is logged. */
#define LONG_WAIT_NS (1 * NS_PER_SEC)

/* How soon after such a call its client makes the next, where it does. */
#define NEXT_CALL_NS (5 * NS_PER_MS)

static const struct calm_held *find_held(const struct calm *calm, uint32_t id)
{
    for (unsigned i = 0; i < calm->count; i++) {
        if (calm->held[i].id == id)
            return &calm->held[i];
    }
    return NULL;
}

static bool holds(const struct calm *calm, uint32_t id)
{
    return find_held(calm, id) != NULL;
}

/* A client that has loaded code asks for its kernels next, which is such a call, too. It would wait
 * for as long as for the first, if those with long work had launched meanwhile. The others lose
 * nothing but time. */
static bool is_held_for_long_work(const struct calm *calm, uint32_t id)
{
    return find_held(calm, id)->until == CALM_UNTIL_RELEASED;
}

static void hold_until(struct session *session, uint64_t until)
{
    if (!session->holders || session->held_until < until)
        session->held_until = until;
}

void calm_hold(struct calm *calm, struct session *session, uint64_t until)
{
    bool held = holds(calm, session->id);

    if (!held && calm->count == CALM_HELD_MAX)
        return;
    hold_until(session, until);
    if (held)
        return;
    calm->held[calm->count++] = (struct calm_held){session->id, until};
    atomic_fetch_add_explicit(&session->holders, 1, memory_order_release);
}

static bool adds_no_work(const struct session *session)
{
    return session->phase != SESSION_SERVING || session->stop || session_is_at_rest(session);
}

static bool are_at_rest(struct server *server, const struct calm *calm)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link) {
        if (holds(calm, session->id) && !adds_no_work(session))
            return false;
    }
    return true;
}

/* The first pause is for a thread that has just looked whether it is held, and for its store that
 * says that it is not at rest: it pays for no fence between the two. */
void calm_await_rest(struct server *server, const struct calm *calm, uint64_t timeout_ns)
{
    const struct timespec pause = {.tv_nsec = REST_PAUSE_NS};
    uint64_t deadline = clock_ns() + timeout_ns;

    if (!calm->count)
        return;
    do
        nanosleep(&pause, NULL);
    while (!are_at_rest(server, calm) && clock_ns() < deadline);
}

/* Where only the one is left that has gone, the others' times do not count any more. */
static void let_go(struct session *session)
{
    if (atomic_fetch_sub(&session->holders, 1) == 2 && atomic_load(&session->held_a_while))
        session->held_until = clock_ns() + NEXT_CALL_NS;
}

static void let_go_in_a_while(struct session *session)
{
    if (atomic_exchange(&session->held_a_while, true))
        let_go(session);
    else if (atomic_load(&session->holders) == 1)
        session->held_until = clock_ns() + NEXT_CALL_NS;
}

static void release(struct server *server, struct calm *calm, bool has_next_call)
{
    if (!calm->count)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, other, &server->sessions, link) {
        if (!holds(calm, other->id))
            continue;
        if (has_next_call && is_held_for_long_work(calm, other->id))
            let_go_in_a_while(other);
        else
            let_go(other);
    }
    calm->count = 0;
}

void calm_release(struct server *server, struct calm *calm)
{
    release(server, calm, false);
}

bool calm_is_held(struct session *session)
{
    if (!atomic_load_explicit(&session->holders, memory_order_acquire))
        return false;
    if (clock_ns() < session->held_until)
        return true;
    if (atomic_exchange(&session->held_a_while, false))
        let_go(session);
    return false;
}

static void change_bars(struct server *server, int change)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    server->bars += (unsigned)change;
}

void calm_bar(struct server *server)
{
    change_bars(server, 1);
}

void calm_unbar(struct server *server)
{
    change_bars(server, -1);
}

static bool begin_unless_barred(struct session *session, bool anyway)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (session->server->bars && !anyway)
        return false;
    session->phase = SESSION_SERVING;
    return true;
}

void calm_admit(struct session *session)
{
    const struct timespec pause = {.tv_nsec = ADMIT_PAUSE_NS};
    uint64_t deadline = clock_ns() + ADMIT_TIMEOUT_NS;

    while (!begin_unless_barred(session, clock_ns() >= deadline))
        nanosleep(&pause, NULL);
}

/* Only the first line names the remedy, since it is the operator's. */
static void log_wait(const struct session *session, const char *what, uint64_t waited)
{
    static atomic_bool remedy_named;

    log_debug("Client " CLIENT_FORMAT " waited %llu ms for a calm moment for %s",
              CLIENT_ARGS(session), (unsigned long long)(waited / NS_PER_MS), what);
    if (waited < LONG_WAIT_NS)
        return;
    log_line("Client " CLIENT_FORMAT " waited %.1f s for the kernels of others before %s",
             CLIENT_ARGS(session), (double)waited / NS_PER_SEC, what);
    if (!session->server->devices.has_spares && !atomic_exchange(&remedy_named, true))
        log_line("With a spare context programs do not wait for that: funnel start --spare");
}

/* Waiting ends with the session, but then the moment need not be calm. */
static CUresult begin(struct session *session, const struct device *device, const char *what,
                      struct calm *calm)
{
    struct server *server = session->server;
    uint64_t began = clock_ns();

    if (server->await_calm)
        server->await_calm(session, device, calm);
    log_wait(session, what, clock_ns() - began);
    CUresult result = server->await_calm && session->stop && !calm->patient
                          ? CUDA_ERROR_NOT_READY
                          : quiesce_begin(device->quiesce, what);
    calm->bars = result == CUDA_SUCCESS;
    if (calm->bars)
        calm_bar(server);
    else
        calm_release(server, calm);
    return result;
}

CUresult calm_begin(struct session *session, const struct device *device, const char *what,
                    struct calm *calm)
{
    calm->count = 0;
    calm->patient = false;
    return begin(session, device, what, calm);
}

CUresult calm_begin_patiently(struct session *session, const struct device *device,
                              const char *what, struct calm *calm)
{
    calm->count = 0;
    calm->patient = true;
    return begin(session, device, what, calm);
}

void calm_await_everywhere(struct session *session, struct calm *calm)
{
    struct server *server = session->server;

    calm->count = 0;
    calm->patient = false;
    for (unsigned i = 0; server->await_calm && i < devices_context_count(&server->devices); i++)
        server->await_calm(session, &server->devices.device[i], calm);
}

CUresult calm_begin_at_once(const struct device *device, const char *what, struct calm *calm)
{
    calm->count = 0;
    calm->bars = false;
    return quiesce_begin(device->quiesce, what);
}

void calm_end(struct session *session, const struct device *device, struct calm *calm)
{
    quiesce_end(device->quiesce);
    if (calm->bars)
        calm_unbar(session->server);
    if (session)
        release(session->server, calm, true);
}
