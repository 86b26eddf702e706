/* SPDX-License-Identifier: Apache-2.0 */
/* See planned_move.h. */
#include "planned_move.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "attach_again.h"
#include "client_call.h"
#include "client_log.h"
#include "client_socket.h"
#include "client_symbol.h"
#include "clock.h"
#include "fd.h"
#include "granule.h"
#include "recovery_snapshot.h"
#include "recovery_state.h"
#include "replay.h"

/* For how long the first planned move waits for the work that the server has read; each further one
 * waits twice as long. Other threads may have to call the library for that work to end, so there is
 * as long a pause between two. */
#define LEAVE_TIMEOUT_MAX_NS (64 * NS_PER_SEC)
#define LEAVE_PAUSE_NS (50 * NS_PER_MS)

/* For so long a client that has left for another device looks for a server, with such pauses. A
 * daemon that was killed may be started again meanwhile. */
#define RETURN_TIMEOUT_NS (30 * NS_PER_SEC)
#define RETURN_PAUSE_NS (50 * NS_PER_MS)

static bool is_being_answered(struct channel *channel)
{
    uint32_t state = channel_leave(channel);

    return state == LEAVE_ASKED || state == LEAVE_COPIES;
}

/* The server waits for the work that it has read, and then reads no more. */
static bool poll_grant(void)
{
    const struct timespec interval = {.tv_nsec = LEAVE_POLL_NS};
    struct channel *channel = &client->channel;
    uint64_t timeout = recovery.leave_timeout_ns, until = clock_ns() + timeout;

    while (is_being_answered(channel) && channel_alive(channel) &&
           channel_error(channel) == CUDA_SUCCESS) {
        if (clock_ns() > until && channel_leave_change(channel, LEAVE_ASKED, LEAVE_WANTED)) {
            recovery.next_leave = clock_ns() + timeout;
            recovery.leave_timeout_ns = timeout < LEAVE_TIMEOUT_MAX_NS ? 2 * timeout : timeout;
            return false;
        }
        nanosleep(&interval, NULL);
    }
    return channel_leave(channel) == LEAVE_GRANTED;
}

/* The work may wait for host functions. */
static bool await_grant(void)
{
    call_await_functions(true);
    bool granted = poll_grant();
    call_await_functions(false);
    return granted;
}

static void log_refusal(enum move_obstacle obstacle)
{
    char name[256] = "";

    if (obstacle == OBSTACLE_ASKED)
        symbols_name_seen(name, sizeof(name));
    client_log_to_file(CUDA_SUCCESS, "does not move to another server now: %s%s%s",
                       move_obstacle_text(obstacle), *name ? ": " : "", name);
}

static void refuse_to_leave(uint32_t state, enum move_obstacle obstacle)
{
    if (move_obstacle_passes(obstacle) && obstacle != OBSTACLE_SERVER)
        channel_leave_change(&client->channel, state, LEAVE_WANTED);
    else
        channel_leave_change(&client->channel, state,
                             LEAVE_REFUSED | (uint32_t)obstacle << LEAVE_OBSTACLE_SHIFT);
    log_refusal(obstacle);
}

/* A server that ends while it takes the client has taken its old connection already. Then the next
 * server has to take it. */
static bool attach_while_leaving(void)
{
    uint64_t connection = client->socket_inode;
    char why[512] = "";

    for (int tries = MOVES_MAX; !attach_again(why, sizeof(why));) {
        client_log_to_file(CUDA_SUCCESS, "another server does not take the client: %s", why);
        if (client->socket_inode == connection || !--tries)
            return false;
    }
    return true;
}

/* Daemon and server may end at any time, and there is no way back. */
static bool attach_in_time(const struct recovery_snapshot *snapshot)
{
    const struct timespec interval = {.tv_nsec = RETURN_PAUSE_NS};
    uint64_t until = clock_ns() + RETURN_TIMEOUT_NS;

    while (!recovery_attach(snapshot)) {
        if (clock_ns() > until)
            return false;
        nanosleep(&interval, NULL);
    }
    return true;
}

/* The next session may be the same server's, and needs the addresses of this one, which ends when
 * the client hangs up. From here on only the copies on the other device count. */
static CUresult settle_on_device(const struct recovery_snapshot *snapshot,
                                 const struct replay_variables *variables)
{
    uint32_t change = variables->device_change;
    CUresult result = CUDA_ERROR_MPS_RPC_FAILURE;

    shutdown(client->socket, SHUT_RDWR);
    devices_exchange(DEVICE_CHANGE_FROM(change), DEVICE_CHANGE_TO(change));
    granules_take_copies(true);
    if (attach_in_time(snapshot))
        result = recovery_settle(snapshot, variables);
    granules_take_copies(false);
    return result;
}

/* Until the other server has offered the client its place, the client has lost nothing. */
static void leave_with(struct recovery_snapshot *snapshot, const struct replay_variables *variables)
{
    if (recovery_snapshot_take(snapshot))
        recovery_snapshot_check(snapshot, &recovery.asked);
    else
        snapshot->obstacle = OBSTACLE_CALL;
    if (!snapshot->obstacle && !variables->device_change && !attach_while_leaving())
        snapshot->obstacle = OBSTACLE_SERVER;
    if (snapshot->obstacle) {
        if (snapshot->deferred != CUDA_SUCCESS)
            channel_defer_error(&client->channel, snapshot->deferred);
        refuse_to_leave(LEAVE_GRANTED, snapshot->obstacle);
        return;
    }
    snapshot->error = variables->device_change ? settle_on_device(snapshot, variables)
                                               : recovery_settle(snapshot, variables);
    recovery.leave_timeout_ns = LEAVE_TIMEOUT_NS;
    recovery.next_wish = 0;
    if (snapshot->error == CUDA_SUCCESS) {
        client_log("has moved to another %s, with all that it had",
                   variables->device_change ? "device" : "server");
        return;
    }
    client_log_to_file(snapshot->error, "not everything could be made again with another server");
    recovery_give_up(snapshot->error);
}

static void leave_granted(struct recovery_snapshot *snapshot)
{
    struct replay_variables variables = {.fd = -1};

    if (client_receive_variables(&variables.fd, &variables.size, &variables.device_change) ==
        CUDA_SUCCESS) {
        leave_with(snapshot, &variables);
    } else {
        recovery.unheard = client->socket_inode;
        refuse_to_leave(LEAVE_GRANTED, OBSTACLE_VARIABLES);
    }
    fd_close(&variables.fd);
}

/* A file that came too late would be taken for that of the next move, with old contents. */
static enum move_obstacle find_leave_obstacle(void)
{
    if (recovery.off)
        return OBSTACLE_OFF;
    return recovery.unheard == client->socket_inode ? OBSTACLE_VARIABLES : recovery_find_obstacle();
}

static void leave_server(void)
{
    struct recovery_snapshot snapshot = {.is_planned = true};
    enum move_obstacle obstacle = find_leave_obstacle();

    if (obstacle)
        refuse_to_leave(LEAVE_WANTED, obstacle);
    else if (channel_leave_change(&client->channel, LEAVE_WANTED, LEAVE_ASKED) && await_grant())
        leave_granted(&snapshot);
    free(snapshot.messages);
}

static void try_to_leave(void)
{
    if (recovery.hopeless || clock_ns() < recovery.next_leave || recovery_is_cut_off() ||
        channel_leave(&client->channel) != LEAVE_WANTED)
        return;
    recovery.next_leave = clock_ns() + LEAVE_PAUSE_NS;
    if (!call_close(CLOSE_BRIEFLY_NS))
        return;
    recovery_begin_move();
    leave_server();
    recovery_end_move();
}

/* A thread that finds another one at it comes to rest in call_park_while_closed(). */
void planned_move_consider(void)
{
    if (!call_is_inside() || recovery_is_mover() || pthread_mutex_trylock(&recovery.lock))
        return;
    call_park();
    if (channel_error(&client->channel) == CUDA_SUCCESS)
        try_to_leave();
    call_unpark();
    pthread_mutex_unlock(&recovery.lock);
    recovery_follow_end();
}
