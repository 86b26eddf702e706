/* SPDX-License-Identifier: Apache-2.0 */
/* See suspend.h. */
#include "suspend.h"

#include <time.h>

#include "cleanup.h"
#include "idle.h"
#include "server.h"
#include "session.h"

#define REST_PAUSE_NS (20 * NS_PER_US)
#define SUSPENDED_PAUSE_NS (100 * NS_PER_US)

/* An exclusive call takes some milliseconds. */
#define ADMIT_PAUSE_NS (100 * NS_PER_US)
#define ADMIT_TIMEOUT_NS (1 * NS_PER_SEC)

static const struct suspended_session *find_suspended(const struct exclusive_call *call,
                                                      uint32_t id)
{
    for (unsigned i = 0; i < call->count; i++) {
        if (call->suspended[i].id == id)
            return &call->suspended[i];
    }
    return NULL;
}

static void extend_suspension(struct session *session, uint64_t until)
{
    if (!session->suspended.count || session->suspended.until < until)
        session->suspended.until = until;
}

void suspend_session(struct exclusive_call *call, struct session *session, uint64_t until)
{
    bool suspended = find_suspended(call, session->id) != NULL;

    if (!suspended && call->count == SUSPENDED_MAX)
        return;
    extend_suspension(session, until);
    if (suspended)
        return;
    call->suspended[call->count++] = (struct suspended_session){session->id, until};
    atomic_fetch_add_explicit(&session->suspended.count, 1, memory_order_release);
}

bool session_is_at_rest(const struct session *session)
{
    return atomic_load_explicit(&session->at_rest, memory_order_acquire);
}

void session_set_at_rest(struct session *session, bool at_rest)
{
    atomic_store_explicit(&session->at_rest, at_rest, memory_order_release);
}

static bool adds_no_work(const struct session *session)
{
    return session->phase != SESSION_SERVING || session->stop || session_is_at_rest(session);
}

static bool are_at_rest(struct server *server, const struct exclusive_call *call)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link) {
        if (find_suspended(call, session->id) && !adds_no_work(session))
            return false;
    }
    return true;
}

/* The first pause is for a thread that has just asked session_is_suspended(), and for its store
 * that says that it is not at rest. The thread pays for no fence between the two. */
void suspend_await_rest(struct server *server, const struct exclusive_call *call,
                        uint64_t timeout_ns)
{
    const struct timespec pause = {.tv_nsec = REST_PAUSE_NS};
    uint64_t deadline = clock_ns() + timeout_ns;

    if (!call->count)
        return;
    do
        nanosleep(&pause, NULL);
    while (!are_at_rest(server, call) && clock_ns() < deadline);
}

/* Where only a lingering suspension is left, the times of the others do not count any more. */
static void resume_session(struct session *session)
{
    if (atomic_fetch_sub(&session->suspended.count, 1) == 2 &&
        atomic_load(&session->suspended.lingers))
        session->suspended.until = clock_ns() + EXCLUSIVE_LINGER_NS;
}

static void resume_after_linger(struct session *session)
{
    if (atomic_exchange(&session->suspended.lingers, true))
        resume_session(session);
    else if (atomic_load(&session->suspended.count) == 1)
        session->suspended.until = clock_ns() + EXCLUSIVE_LINGER_NS;
}

static void end_suspension(struct server *server, struct exclusive_call *call, bool lingers)
{
    if (!call->count)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, session, &server->sessions, link) {
        const struct suspended_session *suspended = find_suspended(call, session->id);

        if (!suspended)
            continue;
        if (lingers && suspended->until == SUSPENDED_UNTIL_END)
            resume_after_linger(session);
        else
            resume_session(session);
    }
    call->count = 0;
}

void suspend_end(struct server *server, struct exclusive_call *call)
{
    end_suspension(server, call, false);
}

void suspend_linger(struct server *server, struct exclusive_call *call)
{
    end_suspension(server, call, true);
}

void suspend_all(struct server *server, struct exclusive_call *call, uint64_t timeout_ns)
{
    uint64_t until = clock_ns() + EXCLUSIVE_BRIEF_NS;

    call->count = 0;
    admission_block(server);
    pthread_mutex_lock(&server->lock);
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase == SESSION_SERVING)
            suspend_session(call, session, until);
    }
    pthread_mutex_unlock(&server->lock);
    suspend_await_rest(server, call, timeout_ns);
}

void suspend_all_end(struct server *server, struct exclusive_call *call)
{
    admission_unblock(server);
    suspend_end(server, call);
}

bool session_is_suspended(struct session *session)
{
    if (!atomic_load_explicit(&session->suspended.count, memory_order_acquire) || session->stop)
        return false;
    if (clock_ns() < session->suspended.until)
        return true;
    if (atomic_exchange(&session->suspended.lingers, false))
        resume_session(session);
    return false;
}

void suspend_await_end(struct session *session)
{
    const struct timespec pause = {.tv_nsec = SUSPENDED_PAUSE_NS};

    while (session_is_suspended(session)) {
        session_set_at_rest(session, true);
        nanosleep(&pause, NULL);
        session->server->idle.source->poll(session);
    }
    session_set_at_rest(session, false);
}

/* ---- admission ---- */

static void change_blocks(struct server *server, int change)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    server->admission_blocks += (unsigned)change;
}

void admission_block(struct server *server)
{
    change_blocks(server, 1);
}

void admission_unblock(struct server *server)
{
    change_blocks(server, -1);
}

static bool begin_serving(struct session *session, bool although_blocked)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (session->server->admission_blocks && !although_blocked)
        return false;
    session->phase = SESSION_SERVING;
    return true;
}

void admission_wait(struct session *session)
{
    const struct timespec pause = {.tv_nsec = ADMIT_PAUSE_NS};
    uint64_t deadline = clock_ns() + ADMIT_TIMEOUT_NS;

    while (!begin_serving(session, clock_ns() >= deadline))
        nanosleep(&pause, NULL);
}
