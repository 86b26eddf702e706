/* SPDX-License-Identifier: Apache-2.0 */
/* See suspend_order.h. */
#include "suspend_order.h"

#include "channel.h"
#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "daemon_report.h"
#include "futex.h"
#include "pending_order.h"
#include "program_suspend.h"
#include "session_leave.h"
#include "session_life.h"
#include "sock.h"
#include "suspend_move.h"
#include "suspend_result.h"
#include "swap.h"
#include "swap_file.h"
#include "swapping.h"

#define ORDER_TIMEOUT_NS (30 * NS_PER_SEC)

static bool is_serving(const struct session *session)
{
    return session->phase == SESSION_SERVING;
}

static bool is_detached(const struct session *session)
{
    return program_suspend_of(session)->followed == SERVER_SUSPEND_DETACH;
}

/* The thread sees the order before its next command. */
void suspend_order_repeat_locked(struct session *session)
{
    atomic_fetch_or(&session->limits.changed, CHANGED_SUSPEND);
    if (session->channel)
        channel_server_kick(session->channel);
}

static void remind(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    suspend_order_repeat_locked(session);
}

static void set_wanted_locked(struct session *session, bool wanted)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (wanted) {
        suspend->result = SUSPEND_BUSY;
        suspend->order = ++session->server->swapping->orders;
    }
    atomic_store_explicit(&suspend->wanted, wanted, memory_order_release);
    futex_wake(&suspend->wanted, 1);
    suspend_order_repeat_locked(session);
}

static void set_more_locked(struct session *session)
{
    atomic_store_explicit(&program_suspend_of(session)->more, true, memory_order_release);
    futex_wake(&program_suspend_of(session)->wanted, 1);
    suspend_order_repeat_locked(session);
}

void suspend_order_evict_locked(struct session *session, const struct swap_part *part)
{
    struct program_suspend *suspend = program_suspend_of(session);

    suspend->part_device = part ? part->device : 0;
    suspend->part_bytes = part ? part->bytes : 0;
    suspend->for_others = true;
    if (suspend->out) {
        set_more_locked(session);
        return;
    }
    suspend->evict = true;
    suspend->to_file = false;
    suspend->kind = SERVER_SUSPEND_LEAVE;
    set_wanted_locked(session, true);
}

void suspend_order_withdraw_locked(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (!suspend->for_others || suspend->leaving)
        return;
    if (suspend->out)
        suspend->more = false;
    else
        set_wanted_locked(session, false);
}

static void resume_all(struct server *server, const struct server_suspend_client *order)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    order_for_each (order, session, server)
        if (is_serving(session))
            set_wanted_locked(session, false);
}

static void order_all(const struct server_suspend_client *order, bool to_file,
                      struct pending_order *pending)
{
    struct server *server = pending->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    pending->first = server->swapping->orders + 1;
    order_for_each (order, session, server) {
        if (!is_serving(session))
            continue;
        program_suspend_of(session)->kind = (int)order->suspend;
        program_suspend_of(session)->evict = order->evict != 0;
        program_suspend_of(session)->for_others = false;
        program_suspend_of(session)->to_file = to_file;
        if (order->suspend == SERVER_SUSPEND_LEAVE && program_suspend_has_resident_memory(session))
            set_more_locked(session);
        set_wanted_locked(session, true);
    }
    pending->last = server->swapping->orders;
}

/* Memory that shall leave a device does so with its program, but no file has its contents then. A
 * program that moves to another server goes on there. */
static int result_at_end(const struct session *session)
{
    return program_suspend_of(session)->to_file || session->life->leaves ? SUSPEND_NO_CLIENT
                                                                         : SUSPEND_OK;
}

/* Not a session that has come since, in which the program may go on. */
static bool is_ordered(const struct session *session, const struct pending_order *order)
{
    unsigned number = program_suspend_of(session)->order;

    return (int)(number - order->first) >= 0 && (int)(order->last - number) >= 0;
}

/* A session whose thread has given up does not want it any more, and says why. */
static int progress_of(struct session *session, bool *ret_done)
{
    struct program_suspend *suspend = program_suspend_of(session);

    if (suspend->out && is_detached(session))
        session_stop(session, CUDA_SUCCESS); /* as if the server had ended */
    if (suspend->out &&
        (program_suspend_leaves_more(session) || program_suspend_has_other_order(session))) {
        *ret_done = false;
        return SUSPEND_OK;
    }
    if (suspend->out)
        return suspend->result == SUSPEND_BUSY ? SUSPEND_OK : suspend->result;
    if (!program_suspend_is_wanted(session))
        return suspend->result;
    if (!is_serving(session) || session->stop)
        return result_at_end(session);
    *ret_done = false;
    remind(session);
    return SUSPEND_OK;
}

/* After a pre-copy it has the time for an idle point that others have from the order on. One that
 * is about to move leaves this server soon, or goes on here. */
static bool has_time(const struct session *session)
{
    uint64_t since = program_suspend_of(session)->precopied_at;

    return session_leave_is_granted(session) || program_suspend_of(session)->leaving ||
           (since && clock_ns() < since + ORDER_TIMEOUT_NS);
}

static bool is_leaving(const struct pending_order *order)
{
    order_for_each (order, session, order->server)
        if (has_time(session))
            return true;
    return false;
}

/* All of the process's clients go on, but those that were locked before. */
static void give_up(const struct pending_order *order)
{
    struct server *server = order->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    order_for_each (order, session, server)
        if (is_serving(session) && is_ordered(session, order) &&
            !program_suspend_is_locked(session))
            set_wanted_locked(session, false);
}

/* A later one, which need not use the file of this one. An eviction for others is none: what leaves
 * for them has been suspended before. */
static bool is_replaced(const struct pending_order *order)
{
    struct server *server = order->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    order_for_each (order, session, server) {
        const struct program_suspend *suspend = program_suspend_of(session);

        if (!suspend->for_others && (int)(suspend->order - order->last) > 0)
            return true;
    }
    return false;
}

static bool poll_suspend(const struct pending_order *order, bool is_late, int *ret_status)
{
    bool done = true, any = false;

    *ret_status = SUSPEND_REPLACED;
    if (is_replaced(order))
        return true;
    *ret_status = SUSPEND_OK;
    order_for_each (order, session, order->server) {
        if (!is_ordered(session, order))
            continue;
        any = true;
        int result = progress_of(session, &done);
        if (result != SUSPEND_OK)
            *ret_status = result;
    }
    if (!any)
        *ret_status = SUSPEND_NO_CLIENT;
    else if (!done && is_late && !is_leaving(order))
        *ret_status = SUSPEND_BUSY;
    if (*ret_status != SUSPEND_OK)
        give_up(order);
    return done || *ret_status != SUSPEND_OK;
}

static bool poll_resume(const struct pending_order *order, bool is_late, int *ret_status)
{
    *ret_status = SUSPEND_OK;
    order_for_each (order, session, order->server) {
        if (!program_suspend_of(session)->out || session->stop)
            continue;
        if (!program_suspend_is_wanted(session) && !is_late)
            return false;
        *ret_status = program_suspend_of(session)->result;
    }
    return true;
}

static bool is_locking(int kind)
{
    return kind == SERVER_SUSPEND_LOCK;
}

/* A suspended program can become an evicted or a locked one, and the other way round. */
static bool is_as_ordered(const struct session *session, const struct server_suspend_client *order)
{
    if (program_suspend_is_wanted(session) != (order->suspend != 0))
        return false;
    if (order->suspend && program_suspend_of(session)->out &&
        program_suspend_is_locked(session) != is_locking((int)order->suspend))
        return false;
    if (order->suspend && program_suspend_has_resident_memory(session))
        return false;
    return !order->suspend || program_suspend_of(session)->evict == (order->evict != 0);
}

static int state_of(const struct session *session, const struct server_suspend_client *order)
{
    if (!order->suspend)
        return SUSPEND_NOT;
    return program_suspend_of(session)->out ? SUSPEND_ALREADY : SUSPEND_PENDING;
}

/* What the order finds: SUSPEND_OK when there is something to do. */
static int state_for(struct server *server, const struct server_suspend_client *order)
{
    int state = SUSPEND_NO_CLIENT;

    order_for_each (order, session, server) {
        if (!is_serving(session))
            continue;
        if (!is_as_ordered(session, order))
            return SUSPEND_OK;
        state = state_of(session, order);
    }
    return state;
}

/* Takes the two descriptors out of the envelope, for the only session that the order is about. */
static int open_envelope(int envelope, struct suspend_file *ret_file)
{
    int fds[2] = {-1, -1};
    size_t count = 0;
    char byte;

    sock_recv(envelope, &byte, sizeof(byte), fds, 2, &count, 0);
    *ret_file = (struct suspend_file){fds[0], fds[1]};
    if (count == 2 && !swap_file_check(fds[0]) && !swap_file_check(fds[1]))
        return SUSPEND_OK;
    suspend_file_close(ret_file);
    return SUSPEND_FILE_KIND;
}

/* The session's thread says that it is out before it leaves no longer. */
static int set_file(struct session *session, const struct suspend_file *file)
{
    struct program_suspend *suspend = program_suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (suspend->leaving)
        return SUSPEND_BUSY;
    if (suspend->out && !program_suspend_is_locked(session))
        return SUSPEND_ALREADY;
    suspend_file_close(&suspend->file);
    suspend->file = *file;
    return SUSPEND_OK;
}

static int give_file(struct server *server, const struct server_suspend_client *order, int envelope)
{
    struct session *only = NULL;
    struct suspend_file file;

    order_for_each (order, session, server) {
        if (!is_serving(session))
            continue;
        if (only)
            return SUSPEND_SEVERAL;
        only = session;
    }
    int state = only ? open_envelope(envelope, &file) : SUSPEND_NO_CLIENT;
    if (state != SUSPEND_OK)
        return state;
    state = set_file(only, &file);
    if (state != SUSPEND_OK)
        suspend_file_close(&file);
    return state;
}

static bool needs_file(const struct server_suspend_client *order)
{
    return order->suspend == SERVER_SUSPEND_SAVE || order->suspend == SERVER_SUSPEND_DETACH;
}

/* SUSPEND_OK when the order is answered later. */
static int start_order(const struct server_suspend_client *order, struct pending_order *pending,
                       bool to_file)
{
    struct server *server = pending->server;

    if (order->suspend)
        order_all(order, to_file, pending);
    else
        resume_all(server, order);
    if (pending_order_start(pending))
        return SUSPEND_OK;
    if (order->suspend)
        give_up(pending);
    return SUSPEND_FAILED;
}

void suspend_order_begin(struct server *server, const struct server_suspend_client *order,
                         int envelope)
{
    struct pending_order pending = {.server = server,
                                    .request = order->header.request,
                                    .pid = order->pid,
                                    .id = order->id,
                                    .deadline = clock_ns() + ORDER_TIMEOUT_NS,
                                    .poll = order->suspend ? poll_suspend : poll_resume};
    int state = state_for(server, order);

    if (state == SUSPEND_OK && (envelope >= 0 || needs_file(order)))
        state = give_file(server, order, envelope);
    if (state == SUSPEND_OK)
        state = start_order(order, &pending, envelope >= 0);
    if (state != SUSPEND_OK)
        daemon_report_result(server, order->header.request, state);
}
