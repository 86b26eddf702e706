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
#include "server_dispatch.h"
#include "server_module.h"
#include "session_idle.h"
#include "session_life.h"
#include "stream.h"
#include "suspend.h"
#include "suspend_result.h"
#include "swap.h"
#include "swap_precopy.h"
#include "swap_slices.h"
#include "swap_transfer.h"
#include "swapping.h"

#define WINDOW_NS_MIN (100 * NS_PER_MS)
#define WINDOW_NS_MAX (2 * NS_PER_SEC)

/* How soon a suspended client's thread sees that the session ends, and how often an evicted one
 * asks for memory. */
#define CHECK_NS (100 * NS_PER_MS)

/* ---- the session's thread ---- */

static struct program_suspend *suspend_of(const struct session *session)
{
    return &session->swapping->order;
}

bool program_suspend_is_wanted(const struct session *session)
{
    return atomic_load_explicit(&suspend_of(session)->wanted, memory_order_acquire);
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

void suspend_file_close(struct suspend_file *file)
{
    fd_close(&file->writable);
    fd_close(&file->readable);
}

static bool is_checkpoint(const struct session *session)
{
    return suspend_of(session)->adopted.kind == SERVER_SUSPEND_SAVE;
}

static bool is_detached(const struct session *session)
{
    return suspend_of(session)->adopted.kind == SERVER_SUSPEND_DETACH;
}

static void check_object(void *context, uint64_t handle, void *object)
{
    enum suspend_result *result = context;
    unsigned type = handle_type(handle);

    if (type == WIRE_ARRAY || type == WIRE_TEXTURE)
        *result = SUSPEND_ARRAYS;
}

static void check_module(void *context, uint64_t handle, void *object)
{
    enum suspend_result *result = context;

    if (handle_type(handle) == WIRE_MODULE && module_ends_with_server(object))
        *result = SUSPEND_MODULES;
}

/* A client that leaves its server goes on in another session. */
static enum suspend_result find_loss(struct session *session)
{
    enum suspend_result result = swap_is_kept(session) ? SUSPEND_OK : SUSPEND_NOT_KEPT;

    if (result == SUSPEND_OK)
        handles_for_each(&session->objects, check_module, &result);
    return result;
}

static enum suspend_result find_obstacle(struct session *session)
{
    enum suspend_result result = swap_obstacle(session);

    if (result == SUSPEND_OK)
        handles_for_each(&session->objects, check_object, &result);
    return result == SUSPEND_OK && is_detached(session) ? find_loss(session) : result;
}

bool program_suspend_has_other_order(const struct session *session)
{
    const struct program_suspend *suspend = suspend_of(session);

    return program_suspend_is_wanted(session) &&
           (suspend->kind == SERVER_SUSPEND_LOCK) != (suspend->followed == SERVER_SUSPEND_LOCK);
}

bool program_suspend_is_locked(const struct session *session)
{
    return suspend_of(session)->out && suspend_of(session)->followed == SERVER_SUSPEND_LOCK;
}

bool program_suspend_has_resident_memory(const struct session *session)
{
    return suspend_of(session)->out && !program_suspend_is_locked(session) &&
           eviction_has_resident_memory(session);
}

bool program_suspend_leaves_more(const struct session *session)
{
    const struct program_suspend *suspend = suspend_of(session);

    return suspend->more || (!suspend->evict && program_suspend_has_resident_memory(session));
}

uint32_t program_suspend_state(const struct session *session)
{
    const struct program_suspend *suspend = suspend_of(session);

    if (!suspend->out || suspend->evict)
        return 0;
    return program_suspend_is_locked(session) ? 2 : 1;
}

static enum suspend_result move_to_pool(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    const struct swap_part part = {suspend->part_device, suspend->part_bytes};

    if (suspend->for_others && part.bytes)
        return swap_slices_out(session, &part, &suspend->copied);
    return swap_out(session, NULL, &suspend->copied);
}

static enum suspend_result move_out(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    const struct suspend_file *file = &suspend->file;
    const struct swap_saving saving = {file->writable, file->readable, is_detached(session)};

    if (!suspend->adopted.to_file)
        return move_to_pool(session);
    return is_checkpoint(session) ? swap_checkpoint_begin(session, file->writable)
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

static void log_away(const struct session *session, uint64_t ns)
{
    const struct program_suspend *suspend = suspend_of(session);
    uint64_t mib = swap_bytes_in_all(session) >> 20, ms = ns / NS_PER_MS;

    if (suspend->adopted.to_file)
        session_log(session, " is %s: %llu MiB are in a file, after %llu ms", state_name(session),
                    (unsigned long long)mib, (unsigned long long)ms);
    else
        session_log(session,
                    " is %s%s: %llu MiB are in host memory, %llu of them copied now, after %llu ms",
                    state_name(session), suspend->for_others ? " to make room for others" : "",
                    (unsigned long long)mib, (unsigned long long)(suspend->copied >> 20),
                    (unsigned long long)ms);
}

static void log_leaving(const struct session *session, enum suspend_result result, uint64_t ns)
{
    if (result != SUSPEND_OK)
        session_log(session, " is not %s: %s", state_name(session), suspend_result_text(result));
    else if (is_checkpoint(session))
        session_log(session, " has stood still for a checkpoint for %llu ms",
                    (unsigned long long)(ns / NS_PER_MS));
    else
        log_away(session, ns);
}

static void tell_result(struct session *session, enum suspend_result result)
{
    suspend_of(session)->more = false;
    if (result == SUSPEND_OK)
        eviction_has_left(session);
    else
        eviction_has_refused(session, result);
}

/* ---- one order after another ---- */

static void end_precopy(struct session *session)
{
    swap_precopy_end(session);
    suspend_of(session)->is_precopied = false;
}

/* False when it is the one that the thread follows already. */
static bool adopt_newest(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (suspend->adopted.order == suspend->order)
        return false;
    suspend->adopted = (struct adopted_order){suspend->order, suspend->kind, suspend->to_file};
    return true;
}

/* What a file has got by a pre-copy counts no more. */
static void drop_precopy(struct session *session)
{
    end_precopy(session);
    suspend_of(session)->leaving = false;
}

static bool is_newest_locked(const struct program_suspend *suspend)
{
    return suspend->adopted.order == suspend->order;
}

static bool follows_newest(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    return program_suspend_is_wanted(session) && is_newest_locked(suspend_of(session));
}

/* Until end_leaving() the main thread leaves the file alone. False when the order has been
 * withdrawn, or another has come. */
static bool begin_leaving(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    suspend->leaving = program_suspend_is_wanted(session) && is_newest_locked(suspend);
    return suspend->leaving;
}

/* When the session says by the rest of its state where it has come to. */
static void end_leaving(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (suspend->adopted.to_file) /* else it is there for the next order */
        suspend_file_close(&suspend->file);
    suspend->leaving = false;
}

/* An order that has come meanwhile has no result yet. */
static void set_result(struct session *session, enum suspend_result result)
{
    struct program_suspend *suspend = suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (is_newest_locked(suspend))
        suspend->result = result;
}

/* A later one that evicts says nothing of a file. */
static void end_order(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (!is_newest_locked(suspend))
        return;
    suspend->kind = SERVER_SUSPEND_LEAVE;
    suspend->wanted = 0;
}

/* ---- leaving ---- */

/* What the order says of the memory, between begin_leaving() and end_leaving(). A checkpoint has
 * begun only: end_checkpoint(). */
static enum suspend_result leave_device(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);
    enum suspend_result result = find_obstacle(session);
    uint64_t began = clock_ns(), before = swap_bytes_in_all(session);

    activity_set_stage(&session->activity, "suspend");
    if (result == SUSPEND_OK)
        result = move_out(session);
    activity_set_stage(&session->activity, NULL);
    log_leaving(session, result, clock_ns() - began);
    if (result == SUSPEND_OK && is_checkpoint(session))
        return result;
    if (result == SUSPEND_OK)
        eviction_note_leaving(session, swap_bytes_in_all(session) - before);
    if (suspend->for_others)
        tell_result(session, result);
    return result;
}

static bool is_called(const struct session *session)
{
    const struct program_suspend *suspend = suspend_of(session);

    return suspend->evict && (suspend->is_in_call || channel_server_has_command(session->channel));
}

/* Waits for the rest of the file. */
static enum suspend_result end_checkpoint(struct session *session)
{
    enum suspend_result result = swap_checkpoint_end(session);

    if (result != SUSPEND_OK)
        session_log(session, " is not checkpointed: %s", suspend_result_text(result));
    return result;
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
    while (program_suspend_is_wanted(session) && !is_called(session) && !session->stop &&
           !program_suspend_has_other_order(session) && !program_suspend_leaves_more(session));
    session_set_at_rest(session, false);
}

/* An evicted program tries again and again, and says so once. */
static void log_no_return(const struct session *session, enum suspend_result result)
{
    const struct program_suspend *suspend = suspend_of(session);

    if (!suspend->evict || suspend->result != (int)result)
        session_log(session, " is not resumed: %s", suspend_result_text(result));
}

static enum suspend_result unlock(const struct session *session)
{
    session_log(session, " is unlocked");
    return SUSPEND_OK;
}

static enum suspend_result move_in(struct session *session)
{
    const struct program_suspend *suspend = suspend_of(session);
    uint64_t bytes = swap_bytes_in_all(session), began = clock_ns();

    activity_set_stage(&session->activity, "resume");
    enum suspend_result result = suspend->evict && eviction_takes_part(session)
                                     ? (enum suspend_result)eviction_return(session)
                                     : swap_in(session, NULL);
    activity_set_stage(&session->activity, NULL);

    if (result == SUSPEND_OK) {
        eviction_note_return(session, bytes);
        session_log(session, " is resumed: %llu MiB are on the device again, after %llu ms",
                    (unsigned long long)(bytes >> 20),
                    (unsigned long long)((clock_ns() - began) / NS_PER_MS));
    } else {
        log_no_return(session, result);
    }
    return result;
}

/* What was ordered while it stood still is over. */
static void come_back(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    suspend_of(session)->out = false;
    suspend_of(session)->more = false;
    session->swapping->eviction.ordered_for = 0;
}

/* False when the client stays suspended. */
static bool return_to_device(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

    adopt_newest(session);
    suspend->wanted = 0; /* an order that comes from here on is a new one */
    enum suspend_result result =
        program_suspend_is_locked(session) ? unlock(session) : move_in(session);
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
    struct program_suspend *suspend = suspend_of(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    if (is_newest_locked(suspend))
        suspend->kind = suspend->followed;
}

/* The memory of a locked client leaves, or that of a suspended one returns. The main thread reads
 * the result as soon as the two kinds agree. */
static void follow_other_order(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

    adopt_newest(session);
    if (!begin_leaving(session))
        return;
    int kind = suspend->adopted.kind;
    enum suspend_result result =
        kind == SERVER_SUSPEND_LOCK ? move_in(session) : leave_device(session);
    if (result == SUSPEND_OK && is_checkpoint(session))
        result = end_checkpoint(session);
    set_result(session, result);
    if (result != SUSPEND_OK || is_checkpoint(session))
        restore_kind(session);
    else
        suspend->followed = kind;
    if (is_detached(session))
        prepare_detachment(session);
    end_leaving(session);
}

/* Part of its memory has stayed, and another program wants that now. When it cannot leave, the
 * client is an evicted one as before. */
static void leave_more(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

    adopt_newest(session);
    suspend->leaving = true;
    enum suspend_result result = leave_device(session);
    set_result(session, result);
    if (result != SUSPEND_OK)
        suspend->evict = true;
    suspend->more = false;
    end_leaving(session);
}

/* A client whose server ends meanwhile knows then that it had nothing in flight. In the middle of a
 * command it has. */
static void settle(struct session *session)
{
    static const uint32_t rests[] = {LEAVE_PENDING, LEAVE_NONE, LEAVE_WANTED};

    if (suspend_of(session)->is_in_call)
        return;
    channel_server_make_exact(session->channel);
    for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
        if (channel_server_leave_change(session->channel, rests[i], LEAVE_SETTLED))
            return;
}

static void unsettle(struct session *session)
{
    channel_server_leave_change(session->channel, LEAVE_SETTLED,
                                session->life->leave_ordered ? LEAVE_WANTED : LEAVE_NONE);
}

static void stay_out(struct session *session)
{
    settle(session);
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
    unsettle(session);
}

static enum suspend_result lock_client(const struct session *session)
{
    session_log(session, " is locked");
    return SUSPEND_OK;
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
    suspend_of(session)->is_writing = false;
    if (stands)
        set_result(session, end_checkpoint(session));
    else
        swap_checkpoint_cancel(session);
    end_precopy(session);
    end_leaving(session);
    if (stands)
        end_order(session);
}

static void begin_precopy(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

    if (!begin_leaving(session))
        return;
    suspend->is_precopied = true;
    suspend->leaving =
        find_obstacle(session) == SUSPEND_OK && swap_precopy_begin(session, suspend->file.writable);
}

/* A file gets most of the contents while the client still runs. Until then it is served. */
static bool is_precopying(struct session *session)
{
    struct program_suspend *suspend = suspend_of(session);

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
    struct program_suspend *suspend = suspend_of(session);

    if (suspend->out) {
        stay_out(session);
        return;
    }
    if (suspend->is_writing) {
        follow_writing(session);
        return;
    }
    if (!program_suspend_is_wanted(session) || adopt_newest(session))
        drop_precopy(session);
    if (!program_suspend_is_wanted(session) || refuses_others(session) || is_precopying(session) ||
        !reach_idle_point(session) || !begin_leaving(session))
        return;
    int kind = suspend->adopted.kind;
    enum suspend_result result =
        kind == SERVER_SUSPEND_LOCK ? lock_client(session) : leave_device(session);
    suspend->is_writing = result == SUSPEND_OK && is_checkpoint(session);
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

    if (!swap_bytes_in_all(session))
        return CUDA_SUCCESS;
    suspend->evict = swap_returns(session);
    session_log(session, " comes %s: %llu MiB are in a file", suspend->evict ? "back" : "suspended",
                (unsigned long long)(swap_bytes_in_all(session) >> 20));
    suspend->kind = suspend->followed = SERVER_SUSPEND_LEAVE;
    suspend->out = true;
    suspend->wanted = 1;
    atomic_fetch_or(&session->limits.changed, CHANGED_SUSPEND);
    return CUDA_SUCCESS;
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
