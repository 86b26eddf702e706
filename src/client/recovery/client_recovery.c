/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving to another server; see client_recovery.h. One thread does it while all others are outside
 * the library, or are parked. It takes no lock but its own: a thread that holds another one is not
 * parked, and then the client keeps its error.
 */
#include "client_recovery.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "attach_again.h"
#include "attach_socket.h"
#include "client_call.h"
#include "client_log.h"
#include "clock.h"
#include "feature.h"
#include "planned_move.h"
#include "recovery_hook.h"
#include "recovery_rules.h"
#include "recovery_snapshot.h"
#include "recovery_state.h"
#include "replay.h"
#include "vmm_replay.h"
#include "wire_calls.h"
#include "wished_move.h"

/* A server that has reported a fault ends at once, but its driver may take a while. */
#define END_TIMEOUT_NS (10 * NS_PER_SEC)
#define END_POLL_NS (2 * NS_PER_MS)

struct recovery recovery = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Partner: channel_break(). */
bool recovery_is_cut_off(void)
{
    return atomic_load_explicit(&client->channel.broken, memory_order_relaxed);
}

/* ---- the end of the last server ---- */

static bool has_ended(void)
{
    const struct timespec interval = {.tv_nsec = END_POLL_NS};
    uint64_t until = clock_ns() + END_TIMEOUT_NS;

    while (channel_alive(&client->channel)) {
        if (clock_ns() > until)
            return false;
        nanosleep(&interval, NULL);
    }
    return true;
}

/* `variables` may be NULL. */
static CUresult replay_and_resend(const struct recovery_snapshot *snapshot,
                                  const struct replay_variables *variables)
{
    CUresult result = replay_memory();

    if (result == CUDA_SUCCESS)
        result = replay_objects(variables);
    if (result != CUDA_SUCCESS)
        return result;
    channel_defer_error(&client->channel, snapshot->deferred);
    channel_answer(&client->channel, snapshot->slots.repeated, CUDA_ERROR_NOT_FOUND);
    return channel_send_again(&client->channel, snapshot->messages, snapshot->size) == 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_MPS_RPC_FAILURE;
}

/* ---- the move ---- */

bool recovery_attach(const struct recovery_snapshot *snapshot)
{
    char why[512] = "";

    if (attach_again(why, sizeof(why)))
        return true;
    client_log_to_file(snapshot->error, "the client could not attach to another server: %s", why);
    return false;
}

/* That server may end as well, while a suspended client waits there. */
static bool has_lost_next(void)
{
    return !channel_alive(&client->channel) && !channel_sticky_error(&client->channel) &&
           replay_has_memory() && vmm_is_whole();
}

/* The client has attached to another server. That one may end before the client is there. */
CUresult recovery_settle(const struct recovery_snapshot *snapshot,
                         const struct replay_variables *variables)
{
    CUresult result = replay_and_resend(snapshot, variables);

    for (int tries = MOVES_MAX; result != CUDA_SUCCESS && --tries && has_lost_next();) {
        if (!recovery_attach(snapshot))
            return result;
        result = replay_and_resend(snapshot, variables);
    }
    /* Of what failed meanwhile no call of the program has told. */
    if (result == CUDA_SUCCESS)
        channel_mend(&client->channel);
    return result;
}

static CUresult move_client(struct recovery_snapshot *snapshot)
{
    CUresult result;

    if (!recovery_attach(snapshot))
        return snapshot->error;
    result = recovery_settle(snapshot, NULL);
    if (result == CUDA_SUCCESS)
        client_log("continues after the end of its last server, with all that it had there");
    else
        client_log_to_file(snapshot->error,
                           "not everything could be made again with the new server: error %d",
                           result);
    return result == CUDA_SUCCESS ? CUDA_SUCCESS : snapshot->error;
}

static CUresult stay(const struct recovery_snapshot *snapshot)
{
    client_log_to_file(snapshot->error,
                       "the server has ended, and this client cannot be moved to another: %s",
                       move_obstacle_text(snapshot->obstacle));
    return snapshot->error;
}

static CUresult move_if_allowed(struct recovery_snapshot *snapshot)
{
    CUresult result;

    if (!recovery_snapshot_lost_work(snapshot)) {
        if (!has_ended() || !recovery_snapshot_take(snapshot))
            return snapshot->error;
        recovery_snapshot_check(snapshot, &recovery.asked);
    }
    result = snapshot->obstacle ? stay(snapshot) : move_client(snapshot);
    free(snapshot->messages);
    return result;
}

/* After call_close(). */
void recovery_begin_move(void)
{
    recovery.mover = pthread_self();
    atomic_store_explicit(&recovery.moving, true, memory_order_release);
}

void recovery_end_move(void)
{
    atomic_store_explicit(&recovery.moving, false, memory_order_release);
    call_open();
}

/* A program may have put something else in the place of the descriptors. */
void recovery_give_up(CUresult error)
{
    channel_give_up(&client->channel, error);
    recovery.hopeless = true;
    if (!attach_is_whole())
        return;
    shutdown(client->socket, SHUT_RDWR);
    replay_give_up_memory();
}

static CUresult try_to_move(CUresult error)
{
    bool gone = error == CUDA_ERROR_MPS_RPC_FAILURE && !channel_sticky_error(&client->channel);
    uint32_t leave = channel_leave(&client->channel);
    struct recovery_snapshot snapshot = {
        .error = error, .is_settled = leave == LEAVE_SETTLED || leave == LEAVE_COPIES};

    if (recovery.off || (!gone && !recovery_is_possible(error)) || recovery_is_cut_off() ||
        !call_close(CLOSE_TIMEOUT_NS))
        return error;
    recovery_begin_move();
    error = move_if_allowed(&snapshot);
    if (error != CUDA_SUCCESS)
        recovery_give_up(error);
    recovery_end_move();
    return error;
}

/* The thread that moves the client waits for answers, too, and must not wait for itself. */
bool recovery_is_mover(void)
{
    return atomic_load_explicit(&recovery.moving, memory_order_acquire) &&
           pthread_equal(recovery.mover, pthread_self());
}

static CUresult move_locked(void)
{
    CUresult error = channel_error(&client->channel);

    if (error == CUDA_SUCCESS || recovery.hopeless)
        return error;
    error = try_to_move(error);
    recovery.hopeless = error != CUDA_SUCCESS;
    return error;
}

static CUresult find_another_server(void)
{
    CUresult error;

    if (recovery_is_mover())
        return channel_error(&client->channel);
    call_park();
    pthread_mutex_lock(&recovery.lock);
    error = move_locked();
    call_unpark();
    pthread_mutex_unlock(&recovery.lock);
    return error;
}

/* A wait for the server may have found that it has ended. The caller's call goes on with the next.
 */
void recovery_follow_end(void)
{
    if (channel_error(&client->channel) != CUDA_SUCCESS)
        find_another_server();
}

static bool revive(void)
{
    return find_another_server() == CUDA_SUCCESS;
}

void recovery_init(void)
{
    pthread_mutex_init(&recovery.lock, NULL);
    recovery.moving = recovery.hopeless = false;
    recovery.leave_timeout_ns = LEAVE_TIMEOUT_NS;
    recovery.off = feature_is_off(FEATURE_RECOVERY);
    recovery_hook = find_another_server;
    recovery_wish_hook = wished_move_consider;
    recovery_leave_hook = planned_move_consider;
    recovery_join_hook = wished_move_join;
    client->channel.revive = revive;
}
