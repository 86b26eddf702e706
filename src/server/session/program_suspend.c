/* SPDX-License-Identifier: Apache-2.0 */
/* See program_suspend.h. */
#include "program_suspend.h"

#include "channel.h"
#include "cleanup.h"
#include "clock.h"
#include "daemon_report.h"
#include "eviction.h"
#include "fd.h"
#include "futex.h"
#include "log.h"
#include "pending_order.h"
#include "server_dispatch.h"
#include "session_idle.h"
#include "session_life.h"
#include "sock.h"
#include "stream.h"
#include "suspend_result.h"
#include "swap.h"
#include "swap_file.h"
#include "swap_transfer.h"

#define ORDER_TIMEOUT_NS (30 * NS_PER_SEC)
#define WINDOW_NS_MIN (100 * NS_PER_MS)
#define WINDOW_NS_MAX (2 * NS_PER_SEC)

/* How soon a suspended client's thread sees that the session ends, and how often an evicted one
 * asks for memory. */
#define CHECK_NS (100 * NS_PER_MS)

/* ---- the session's thread ---- */

static struct program_suspend *suspend_of(const struct session *session)
{
    return &session->life->suspend;
}

static bool is_wanted(const struct session *session)
{
    return atomic_load_explicit(&suspend_of(session)->wanted, memory_order_acquire);
}

/* Without rest: the copies of the memory follow. */
static bool become_idle(struct session *session, uint64_t window_ns)
{
    const struct idle_wait wait = {.deadline = clock_ns() + window_ns, .is_wanted = is_wanted};

    return session_await_idle(session, &wait);
}

/* Between two windows the client is served for as long as the last one was. */
static bool reach_idle_point(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

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

static void check_object(void *context, uint64_t handle, void *object)
{
    enum suspend_result *result = context;
    unsigned type = handle_type(handle);

    if (type == WIRE_ARRAY || type == WIRE_TEXTURE)
        *result = SUSPEND_ARRAYS;
}

static enum suspend_result find_obstacle(struct session *session)
{
    enum suspend_result result = swap_obstacle(session);

    if (result == SUSPEND_OK)
        handles_for_each(&session->objects, check_object, &result);
    return result;
}

static uint64_t total_bytes(const struct session *session)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        bytes += swap_bytes(session, i);
    return bytes;
}

static void close_file(struct suspend_file *file)
{
    fd_close(&file->writable);
    fd_close(&file->readable);
}

static bool is_checkpoint(const struct session *session)
{
    return suspend_of(session)->kind == SERVER_SUSPEND_SAVE;
}

static bool is_detached(const struct session *session)
{
    return suspend_of(session)->kind == SERVER_SUSPEND_DETACH;
}

static enum suspend_result move_out(struct session *session)
{
    const struct suspend_file *file = &suspend_of(session)->file;
    const struct swap_saving saving = {file->writable, file->readable, is_detached(session)};

    if (file->writable < 0)
        return swap_out(session);
    return is_checkpoint(session) ? swap_checkpoint(session, &saving)
                                  : swap_out_to_file(session, &saving);
}

static const char *state_name(const struct session *session)
{
    if (is_checkpoint(session))
        return "checkpointed";
    if (is_detached(session))
        return "detached";
    return suspend_of(session)->evict ? "evicted" : "suspended";
}

static void log_leaving(const struct session *session, enum suspend_result result, uint64_t ns)
{
    bool in_file = suspend_of(session)->file.writable >= 0;

    if (result != SUSPEND_OK)
        session_log(session, " is not %s: %s", state_name(session), suspend_result_text(result));
    else if (is_checkpoint(session))
        session_log(session, " has stood still for a checkpoint for %llu ms",
                    (unsigned long long)(ns / NS_PER_MS));
    else
        session_log(session, " is %s%s: %llu MiB are in %s, after %llu ms", state_name(session),
                    suspend_of(session)->for_others ? " to make room for others" : "",
                    (unsigned long long)(total_bytes(session) >> 20),
                    in_file ? "a file" : "host memory", (unsigned long long)(ns / NS_PER_MS));
}

static void tell_result(struct session *session, enum suspend_result result)
{
    if (result == SUSPEND_OK)
        eviction_has_left(session);
    else
        eviction_has_refused(session, result);
}

static enum suspend_result leave_device(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    enum suspend_result result = find_obstacle(session);
    uint64_t began = clock_ns();

    activity_set_stage(&session->activity, "suspend");
    suspend->leaving = true;
    if (result == SUSPEND_OK)
        result = move_out(session);
    suspend->leaving = false;
    activity_set_stage(&session->activity, NULL);
    log_leaving(session, result, clock_ns() - began);
    close_file(&suspend->file);
    if (result == SUSPEND_OK)
        eviction_note_leaving(session, total_bytes(session));
    if (suspend->for_others)
        tell_result(session, result);
    return result;
}

static bool is_called(const struct session *session)
{
    const struct program_suspend *suspend = suspend_of(session);

    return suspend->evict && (suspend->is_in_call || channel_server_has_command(session->channel));
}

/* An evicted client whose command is there already has found no memory, or was not idle. */
static void await_change(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

    if (suspend->evict && !is_called(session))
        channel_server_wait(session->channel, CHECK_NS);
    else
        futex_wait(&suspend->wanted, 1, CHECK_NS);
}

static void await_resume(struct session *session)
{
    session_set_at_rest(session, true);
    do
        await_change(session);
    while (is_wanted(session) && !is_called(session) && !session->stop);
    session_set_at_rest(session, false);
}

/* An evicted program tries again and again, and says so once. */
static void log_no_return(const struct session *session, enum suspend_result result)
{
    const struct program_suspend *suspend = suspend_of(session);

    if (!suspend->evict || suspend->result != (int)result)
        session_log(session, " is not resumed: %s", suspend_result_text(result));
}

/* False when the client stays suspended. */
static bool return_to_device(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    uint64_t bytes = total_bytes(session), began = clock_ns();

    suspend->wanted = 0; /* an order that comes from here on is a new one */
    activity_set_stage(&session->activity, "resume");
    enum suspend_result result = suspend->evict && eviction_takes_part(session)
                                     ? (enum suspend_result)eviction_return(session)
                                     : swap_in(session);
    activity_set_stage(&session->activity, NULL);

    if (result == SUSPEND_OK) {
        eviction_note_return(session, bytes);
        session_log(session, " is resumed: %llu MiB are on the device again, after %llu ms",
                    (unsigned long long)(bytes >> 20),
                    (unsigned long long)((clock_ns() - began) / NS_PER_MS));
    } else {
        log_no_return(session, result);
    }
    suspend->result = result;
    suspend->out = result != SUSPEND_OK;
    if (suspend->out)
        suspend->wanted = 1;
    return result == SUSPEND_OK;
}

static void stay_out(struct session *session)
{
    do
        await_resume(session);
    while (!session->stop && !return_to_device(session));
}

/* A client that cannot leave is not kept from its work to find that out. */
static bool refuses_others(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    enum suspend_result result = suspend->for_others ? find_obstacle(session) : SUSPEND_OK;

    if (result == SUSPEND_OK)
        return false;
    session_log(session, " does not make room for others: %s", suspend_result_text(result));
    eviction_has_refused(session, result);
    suspend->result = result;
    suspend->wanted = 0;
    return true;
}

/* The client keeps its claim to its addresses. The main thread ends the session. */
static void await_detachment(struct session *session)
{
    channel_server_make_exact(session->channel);
    session->life->leaves = true;
    stay_out(session);
    session->life->leaves = session->stop;
}

/* A later one that evicts says nothing of a file. */
static void end_order(struct program_suspend *suspend)
{
    suspend->kind = SERVER_SUSPEND_LEAVE;
    suspend->wanted = 0;
}

void program_suspend_follow(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

    if (suspend->out) {
        stay_out(session);
        return;
    }
    if (!is_wanted(session) || refuses_others(session) || !reach_idle_point(session))
        return;
    enum suspend_result result = leave_device(session);
    bool goes_on = result != SUSPEND_OK || is_checkpoint(session);
    suspend->result = result;
    suspend->out = !goes_on;
    if (goes_on)
        end_order(suspend);
    else if (is_detached(session))
        await_detachment(session);
    else
        stay_out(session);
}

void program_suspend_follow_in_call(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

    suspend->is_in_call = true;
    program_suspend_follow(session);
    suspend->is_in_call = false;
}

/* ---- a client that comes suspended ---- */

CUresult serve_fnGranulesAdopted(struct session *session, const struct wire_fnGranulesAdopted *in)
{
    struct program_suspend *suspend = suspend_of(session);

    if (!total_bytes(session))
        return CUDA_SUCCESS;
    suspend->evict = swap_returns(session);
    session_log(session, " comes %s: %llu MiB are in a file", suspend->evict ? "back" : "suspended",
                (unsigned long long)(total_bytes(session) >> 20));
    suspend->out = true;
    suspend->wanted = 1;
    atomic_fetch_or(&session->limits.changed, CHANGED_SUSPEND);
    return CUDA_SUCCESS;
}

/* ---- the main thread ---- */

void program_suspend_init(struct program_suspend *suspend)
{
    suspend->file = (struct suspend_file){-1, -1};
}

void program_suspend_fini(struct program_suspend *suspend)
{
    close_file(&suspend->file);
}

/* The thread sees the order before its next command. */
void program_suspend_repeat_locked(struct session *session)
{
    atomic_fetch_or(&session->limits.changed, CHANGED_SUSPEND);
    if (session->channel)
        channel_server_kick(session->channel);
}

static void remind(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    program_suspend_repeat_locked(session);
}

static void set_wanted_locked(struct session *session, bool wanted)
{
    struct program_suspend *suspend = suspend_of(session);

    if (wanted)
        suspend->result = SUSPEND_BUSY;
    atomic_store_explicit(&suspend->wanted, wanted, memory_order_release);
    futex_wake(&suspend->wanted, 1);
    program_suspend_repeat_locked(session);
}

void program_suspend_evict_locked(struct session *session)
{
    suspend_of(session)->evict = true;
    suspend_of(session)->for_others = true;
    set_wanted_locked(session, true);
}

void program_suspend_withdraw_locked(struct session *session)
{
    const struct program_suspend *suspend = suspend_of(session);

    if (suspend->for_others && !suspend->leaving && !suspend->out)
        set_wanted_locked(session, false);
}

/* Sets it for all clients that the order is about. */
static void set_all(struct server *server, int32_t pid, uint32_t id, bool wanted)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link)
        if (order_is_about(session, pid, id) && session->phase == SESSION_SERVING)
            set_wanted_locked(session, wanted);
}

static void order_all(struct server *server, const struct server_suspend_client *order)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link) {
        if (!order_is_about(session, order->pid, order->id) || session->phase != SESSION_SERVING)
            continue;
        suspend_of(session)->kind = (int)order->suspend;
        suspend_of(session)->evict = order->evict != 0;
        suspend_of(session)->for_others = false;
        set_wanted_locked(session, true);
    }
}

/* A session whose thread has given up does not want it any more, and says why. */
static int progress_of(struct session *session, bool *ret_done)
{
    struct program_suspend *suspend = suspend_of(session);

    if (suspend->out && is_detached(session))
        session_stop(session, CUDA_SUCCESS); /* as if the server had ended */
    if (suspend->out || session->phase != SESSION_SERVING || session->stop)
        return SUSPEND_OK;
    if (!is_wanted(session))
        return suspend->result;
    *ret_done = false;
    remind(session);
    return SUSPEND_OK;
}

static bool is_leaving(const struct pending_order *order)
{
    list_for_each (struct session, session, &order->server->sessions, link)
        if (order_is_about(session, order->pid, order->id) && suspend_of(session)->leaving)
            return true;
    return false;
}

static bool poll_suspend(const struct pending_order *order, bool is_late, int *ret_status)
{
    bool done = true, any = false;

    *ret_status = SUSPEND_OK;
    list_for_each (struct session, session, &order->server->sessions, link) {
        if (!order_is_about(session, order->pid, order->id))
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
        set_all(order->server, order->pid, order->id, false);
    return done || *ret_status != SUSPEND_OK;
}

static bool poll_resume(const struct pending_order *order, bool is_late, int *ret_status)
{
    *ret_status = SUSPEND_OK;
    list_for_each (struct session, session, &order->server->sessions, link) {
        if (!order_is_about(session, order->pid, order->id) || !suspend_of(session)->out ||
            session->stop)
            continue;
        if (!is_wanted(session) && !is_late)
            return false;
        *ret_status = suspend_of(session)->result;
    }
    return true;
}

/* A suspended program can become an evicted one, and the other way round. */
static bool is_as_ordered(const struct session *session, const struct server_suspend_client *order)
{
    if (is_wanted(session) != (order->suspend != 0))
        return false;
    return !order->suspend || suspend_of(session)->evict == (order->evict != 0);
}

/* What the order finds: SUSPEND_OK when there is something to do. */
static int state_for(struct server *server, const struct server_suspend_client *order)
{
    int state = SUSPEND_NO_CLIENT;

    list_for_each (struct session, session, &server->sessions, link) {
        if (!order_is_about(session, order->pid, order->id) || session->phase != SESSION_SERVING)
            continue;
        if (!is_as_ordered(session, order))
            return SUSPEND_OK;
        state = order->suspend ? SUSPEND_ALREADY : SUSPEND_NOT;
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
    close_file(ret_file);
    return SUSPEND_FILE_KIND;
}

static int give_file(struct server *server, const struct server_suspend_client *order, int envelope)
{
    struct session *only = NULL;
    struct suspend_file file;

    list_for_each (struct session, session, &server->sessions, link) {
        if (!order_is_about(session, order->pid, order->id) || session->phase != SESSION_SERVING)
            continue;
        if (only)
            return SUSPEND_SEVERAL;
        if (suspend_of(session)->out)
            return SUSPEND_ALREADY;
        only = session;
    }
    int state = only ? open_envelope(envelope, &file) : SUSPEND_NO_CLIENT;
    if (state != SUSPEND_OK)
        return state;
    close_file(&suspend_of(only)->file);
    suspend_of(only)->file = file;
    return SUSPEND_OK;
}

static bool needs_file(const struct server_suspend_client *order)
{
    return order->suspend == SERVER_SUSPEND_SAVE || order->suspend == SERVER_SUSPEND_DETACH;
}

void program_suspend_order(struct server *server, const struct server_suspend_client *order,
                           int envelope)
{
    const struct pending_order pending = {.server = server,
                                          .request = order->header.request,
                                          .pid = order->pid,
                                          .id = order->id,
                                          .deadline = clock_ns() + ORDER_TIMEOUT_NS,
                                          .poll = order->suspend ? poll_suspend : poll_resume};
    int state = state_for(server, order);

    if (state == SUSPEND_OK && (envelope >= 0 || needs_file(order)))
        state = give_file(server, order, envelope);
    if (state == SUSPEND_OK && !pending_order_start(&pending))
        state = SUSPEND_FAILED;
    if (state != SUSPEND_OK)
        daemon_report_result(server, order->header.request, state);
    else if (order->suspend)
        order_all(server, order);
    else
        set_all(server, order->pid, order->id, false);
}
