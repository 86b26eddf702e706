/* SPDX-License-Identifier: Apache-2.0 */
/* See program_suspend.h. */
#include "program_suspend.h"

#include "channel.h"
#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "eviction.h"
#include "fd.h"
#include "futex.h"
#include "log.h"
#include "rest_eviction.h"
#include "session_idle.h"
#include "session_leave.h"
#include "session_life.h"
#include "stream.h"
#include "suspend.h"
#include "suspend_arrival.h"
#include "suspend_move.h"
#include "suspend_result.h"
#include "swap.h"
#include "swap_precopy.h"
#include "swap_transfer.h"
#include "swapping.h"

#define WINDOW_NS_MIN (100 * NS_PER_MS)
#define WINDOW_NS_MAX (2 * NS_PER_SEC)

/* How soon a suspended client's thread sees that the session ends, and how often an evicted one
 * asks for memory. */
#define CHECK_NS (100 * NS_PER_MS)

/* ---- the session's thread ---- */

bool program_suspend_is_wanted(const struct session *session)
{
    return atomic_load_explicit(&program_suspend_of(session)->wanted, memory_order_acquire);
}

/* Without rest: the copies of the memory follow. */
static bool become_idle(struct session *session, uint64_t window_ns)
{
    const struct idle_wait wait = {.deadline = clock_ns() + window_ns,
                                   .is_wanted = program_suspend_is_wanted};

    return session_await_idle(session, &wait);
}

/* Between two windows the client is served for as long as the last one was. */
static bool reach_idle_point(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (clock_ns() < suspend->next_try)
        return false;
    if (!suspend->window_ns)
        suspend->window_ns = WINDOW_NS_MIN;
    if (become_idle(session, suspend->window_ns)) {
        suspend->window_ns = suspend->next_try = 0;
        return true;
    }
    suspend->next_try = clock_ns() + suspend->window_ns;
    if (suspend->window_ns < WINDOW_NS_MAX)
        suspend->window_ns *= 2;
    return false;
}

void suspend_file_close(struct suspend_file *file)
{
    fd_close(&file->writable);
    fd_close(&file->readable);
}

bool program_suspend_has_other_order(const struct session *session)
{
    const struct program_suspend *suspend = program_suspend_of(session);

    return program_suspend_is_wanted(session) &&
           (suspend->kind == SERVER_SUSPEND_LOCK) != (suspend->followed == SERVER_SUSPEND_LOCK);
}

bool program_suspend_is_locked(const struct session *session)
{
    return program_suspend_of(session)->out &&
           program_suspend_of(session)->followed == SERVER_SUSPEND_LOCK;
}

bool program_suspend_has_resident_memory(const struct session *session)
{
    return program_suspend_of(session)->out && !program_suspend_is_locked(session) &&
           eviction_has_resident_memory(session);
}

bool program_suspend_leaves_more(const struct session *session)
{
    const struct program_suspend *suspend = program_suspend_of(session);

    return suspend->more || (!suspend->evict && program_suspend_has_resident_memory(session));
}

uint32_t program_suspend_state(const struct session *session)
{
    const struct program_suspend *suspend = program_suspend_of(session);

    if (!suspend->out || suspend->evict)
        return 0;
    return program_suspend_is_locked(session) ? 2 : 1;
}

/* ---- one order after another ---- */

static void end_precopy(struct session *session)
{
    swap_precopy_end(session);
    program_suspend_of(session)->is_precopied = false;
}

/* False when it is the one that the thread follows already. */
static bool adopt_newest_locked(struct program_suspend *suspend)
{
    if (suspend->adopted.order == suspend->order)
        return false;
    suspend->adopted = (struct adopted_order){suspend->order, suspend->kind, suspend->to_file};
    return true;
}

static bool adopt_newest(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    return adopt_newest_locked(program_suspend_of(session));
}

/* What a file has got by a pre-copy counts no more. */
static void drop_precopy(struct session *session)
{
    end_precopy(session);
    program_suspend_of(session)->leaving = false;
}

static bool is_newest_locked(const struct program_suspend *suspend)
{
    return suspend->adopted.order == suspend->order;
}

static bool follows_newest(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    return program_suspend_is_wanted(session) && is_newest_locked(program_suspend_of(session));
}

/* Until end_leaving() the main thread leaves the file alone. False when the order has been
 * withdrawn, or another has come. */
static bool begin_leaving(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    suspend->leaving = program_suspend_is_wanted(session) && is_newest_locked(suspend);
    return suspend->leaving;
}

/* When the session says by the rest of its state where it has come to. */
static void end_leaving(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (suspend->adopted.to_file) /* else it is there for the next order */
        suspend_file_close(&suspend->file);
    suspend->leaving = false;
}

/* An order that has come meanwhile has no result yet. */
static void set_result(struct session *session, enum suspend_result result)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (is_newest_locked(suspend))
        suspend->result = result;
}

/* A later one that evicts says nothing of a file. */
static void end_order(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (!is_newest_locked(suspend))
        return;
    suspend->kind = SERVER_SUSPEND_LEAVE;
    suspend->wanted = 0;
}

/* ---- leaving ---- */

static bool is_called(const struct session *session)
{
    const struct program_suspend *suspend = program_suspend_of(session);

    return suspend->evict && (suspend->is_in_call || channel_server_has_command(session->channel));
}

/* An evicted client whose command is there already has found no memory, or was not idle. */
static void await_change(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (suspend->evict && !is_called(session))
        channel_server_wait(session->channel, CHECK_NS);
    else
        futex_wait(&suspend->wanted, 1, CHECK_NS);
}

/* A client whose server ends meanwhile knows then that it had nothing in flight. In the middle of a
 * command it has. The word may say first that the client asks for a move, or refuses one. */
static void settle(struct session *session)
{
    static const uint32_t rests[] = {LEAVE_PENDING, LEAVE_NONE, LEAVE_WANTED};

    if (program_suspend_of(session)->is_in_call)
        return;
    channel_server_make_exact(session->channel);
    for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
        if (channel_server_leave_change(session->channel, rests[i], LEAVE_SETTLED))
            return;
}

static void await_resume(struct session *session)
{
    session_set_at_rest(session, true);
    do {
        settle(session);
        await_change(session);
    } while (program_suspend_is_wanted(session) && !is_called(session) && !session->stop &&
             !program_suspend_has_other_order(session) && !program_suspend_leaves_more(session));
    session_set_at_rest(session, false);
}

static enum suspend_result unlock(const struct session *session)
{
    session_log(session, " is unlocked");
    return SUSPEND_OK;
}

/* What was ordered while it stood still is over. */
static void come_back(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    program_suspend_of(session)->out = false;
    program_suspend_of(session)->more = false;
    session->swapping->eviction.ordered_for = 0;
}

/* An order that comes from here on is a new one. False when one came just before that keeps the
 * client away: it has its result by that, and not by a return. */
static bool begin_return(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (program_suspend_is_wanted(session) && !is_called(session))
        return false;
    adopt_newest_locked(suspend);
    suspend->wanted = 0;
    return true;
}

/* False when the client stays suspended. */
static bool return_to_device(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (!begin_return(session))
        return false;
    enum suspend_result result =
        program_suspend_is_locked(session) ? unlock(session) : suspend_return(session);
    set_result(session, result);
    if (result == SUSPEND_OK)
        come_back(session);
    else
        suspend->wanted = 1;
    return result == SUSPEND_OK;
}

/* The client keeps its claim to its addresses. The main thread ends the session. */
static void prepare_detachment(struct session *session)
{
    session->life->leaves = true;
}

/* It stands still by the order before this one. */
static void restore_kind(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (is_newest_locked(suspend))
        suspend->kind = suspend->followed;
}

/* The memory of a locked client leaves, or that of a suspended one returns. The main thread reads
 * the result as soon as the two kinds agree. */
static void follow_other_order(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    adopt_newest(session);
    if (!begin_leaving(session))
        return;
    int kind = suspend->adopted.kind;
    enum suspend_result result =
        kind == SERVER_SUSPEND_LOCK ? suspend_return(session) : suspend_leave_device(session);
    if (result == SUSPEND_OK && suspend_is_checkpoint(session))
        result = suspend_end_checkpoint(session);
    set_result(session, result);
    if (result != SUSPEND_OK || suspend_is_checkpoint(session))
        restore_kind(session);
    else
        suspend->followed = kind;
    if (suspend_is_detached(session))
        prepare_detachment(session);
    end_leaving(session);
}

/* Part of its memory has stayed, and another program wants that now. When it cannot leave, the
 * client is an evicted one as before. */
static void leave_more(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    adopt_newest(session);
    suspend->leaving = true;
    enum suspend_result result = suspend_leave_device(session);
    set_result(session, result);
    if (result != SUSPEND_OK)
        suspend->evict = true;
    suspend->more = false;
    end_leaving(session);
}

static void stay_out(struct session *session)
{
    for (;;) {
        await_resume(session);
        if (session->stop)
            return;
        if (program_suspend_has_other_order(session))
            follow_other_order(session);
        else if (program_suspend_leaves_more(session))
            leave_more(session);
        else if (return_to_device(session))
            break;
    }
    session_leave_unsettle(session);
}

static enum suspend_result lock_client(const struct session *session)
{
    session_log(session, " is locked");
    return SUSPEND_OK;
}

/* A client that cannot leave is not kept from its work to find that out. */
static bool refuses_others(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    enum suspend_result result = suspend->for_others ? suspend_obstacle(session) : SUSPEND_OK;

    if (result == SUSPEND_OK)
        return false;
    session_log(session, " %s: %s",
                rest_eviction_is_under_way(session) ? "rests, and its memory cannot leave"
                                                    : "does not make room for others",
                suspend_result_text(result));
    eviction_has_refused(session, result);
    set_result(session, result);
    end_order(session);
    return true;
}

static void await_detachment(struct session *session)
{
    prepare_detachment(session);
    stay_out(session);
    session->life->leaves = session->stop;
}

/* The client goes on, and the rest of the file is written beside it. An order that is withdrawn has
 * no use for the file. */
static void follow_writing(struct session *session)
{
    bool stands = follows_newest(session);

    if (stands && swap_checkpoint_runs(session))
        return;
    program_suspend_of(session)->is_writing = false;
    if (stands)
        set_result(session, suspend_end_checkpoint(session));
    else
        swap_checkpoint_cancel(session);
    end_precopy(session);
    end_leaving(session);
    if (stands)
        end_order(session);
}

static void begin_precopy(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (!begin_leaving(session))
        return;
    suspend->is_precopied = true;
    suspend->leaving = suspend_obstacle(session) == SUSPEND_OK &&
                       swap_precopy_begin(session, suspend->file.writable);
}

/* A file gets most of the contents while the client still runs. Until then it is served. */
static bool is_precopying(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (!suspend->adopted.to_file || suspend->is_in_call)
        return false;
    if (!suspend->is_precopied)
        begin_precopy(session);
    if (swap_precopy_runs(session))
        return true;
    if (suspend->leaving)
        suspend->precopied_at = clock_ns();
    suspend->leaving = false;
    return false;
}

void program_suspend_follow(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (suspend->out) {
        stay_out(session);
        return;
    }
    if (suspend->is_writing) {
        follow_writing(session);
        return;
    }
    /* A client that has moved has its memory in another server. */
    if (suspend_arrival_is_awaited(session) || session->stop)
        return;
    if (!program_suspend_is_wanted(session) || adopt_newest(session))
        drop_precopy(session);
    if (!program_suspend_is_wanted(session) || refuses_others(session) || is_precopying(session) ||
        !reach_idle_point(session) || !begin_leaving(session))
        return;
    int kind = suspend->adopted.kind;
    enum suspend_result result =
        kind == SERVER_SUSPEND_LOCK ? lock_client(session) : suspend_leave_device(session);
    suspend->is_writing = result == SUSPEND_OK && suspend_is_checkpoint(session);
    if (suspend->is_writing)
        return;
    end_precopy(session);
    bool goes_on = result != SUSPEND_OK;
    set_result(session, result);
    suspend->followed = kind;
    suspend->out = !goes_on;
    end_leaving(session);
    if (goes_on)
        end_order(session);
    else if (suspend_is_detached(session))
        await_detachment(session);
    else
        stay_out(session);
}

void program_suspend_follow_in_call(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    suspend->is_in_call = true;
    program_suspend_follow(session);
    suspend->is_in_call = false;
}

/* ---- of a session ---- */

void program_suspend_init(struct program_suspend *suspend)
{
    suspend->file = (struct suspend_file){-1, -1};
}

void program_suspend_fini(struct program_suspend *suspend)
{
    suspend_file_close(&suspend->file);
}
