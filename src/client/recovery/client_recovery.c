/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving to another server; see client_recovery.h. One thread does it while all others are outside
 * the library, or are parked. It takes no lock but its own: a thread that holds another one is not
 * parked, and then the client keeps its error.
 */
#include "client_recovery.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "attach_again.h"
#include "cleanup.h"
#include "client_call.h"
#include "client_log.h"
#include "client_socket.h"
#include "client_symbol.h"
#include "clock.h"
#include "cuda_error.h"
#include "fd.h"
#include "feature.h"
#include "granule.h"
#include "recovery_hook.h"
#include "recovery_rules.h"
#include "recovery_snapshot.h"
#include "replay.h"
#include "vmm_replay.h"
#include "wire_calls.h"

/* A server that has reported a fault ends at once, but its driver may take a while. */
#define END_TIMEOUT_NS (10 * NS_PER_SEC)
#define END_POLL_NS (2 * NS_PER_MS)

/* How long the client waits until other threads are outside the library. The first is for a move
 * that it needs, the second for one that it can do without. */
#define CLOSE_TIMEOUT_NS (2 * NS_PER_SEC)
#define CLOSE_BRIEFLY_NS (5 * NS_PER_MS)

/* In one move, as servers end one after the other. */
#define MOVES_MAX 10

/* Before the next load the client does not ask again so soon. */
#define WISH_PAUSE_NS (200 * NS_PER_MS)

/* While there is no better lane the client asks for so long, with such pauses. The daemon hears
 * three times meanwhile whether a lane is still occupied. */
#define ASK_TIMEOUT_NS (1500 * NS_PER_MS)
#define ASK_PAUSE_NS (20 * NS_PER_MS)

/* After that it asks no more for a while: a program may load code a thousand times. */
#define REFUSED_PAUSE_NS (5 * NS_PER_SEC)

/* It waits so long for an order: another lane may have to start. A daemon that says nothing until
 * then, because it is stopped, is not asked again so soon. */
#define ORDER_TIMEOUT_NS (10 * NS_PER_SEC)
#define SILENT_PAUSE_NS (60 * NS_PER_SEC)

/* With an order it waits so long until it has moved. Later it may still do so, and the call that
 * needed the move has failed. */
#define JOIN_TIMEOUT_NS (3 * NS_PER_SEC)

/* For how long the first planned move waits for the work that the server has read; each further one
 * waits twice as long. Other threads may have to call the library for that work to end, so there is
 * as long a pause between two. */
#define LEAVE_TIMEOUT_NS NS_PER_SEC
#define LEAVE_TIMEOUT_MAX_NS (64 * NS_PER_SEC)
#define LEAVE_POLL_NS (500 * NS_PER_US)
#define LEAVE_PAUSE_NS (50 * NS_PER_MS)

/* For so long a client that has left for another device looks for a server, with such pauses. A
 * daemon that was killed may be started again meanwhile. */
#define RETURN_TIMEOUT_NS (30 * NS_PER_SEC)
#define RETURN_PAUSE_NS (50 * NS_PER_MS)

static struct recovery {
    pthread_mutex_t lock;
    pthread_t mover;    /* valid while moving */
    atomic_bool moving; /* atomic */
    bool off;
    bool hopeless;
    atomic_uint_fast64_t next_wish; /* clock_ns(), like the next */
    uint64_t next_leave;
    enum move_obstacle told; /* as it was logged last */
    uint64_t leave_timeout_ns;
    uint64_t unheard; /* the connection by which a file of variables may come too late; or 0 */
    struct recovery_asked asked;
} recovery = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Partner: channel_break(). */
static bool client_is_broken(void)
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

static bool attach_to_next(const struct recovery_snapshot *snapshot)
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
static CUresult settle(const struct recovery_snapshot *snapshot,
                       const struct replay_variables *variables)
{
    CUresult result = replay_and_resend(snapshot, variables);

    for (int tries = MOVES_MAX; result != CUDA_SUCCESS && --tries && has_lost_next();) {
        if (!attach_to_next(snapshot))
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

    if (!attach_to_next(snapshot))
        return snapshot->error;
    result = settle(snapshot, NULL);
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
static void begin_move(void)
{
    recovery.mover = pthread_self();
    atomic_store_explicit(&recovery.moving, true, memory_order_release);
}

static void end_move(void)
{
    atomic_store_explicit(&recovery.moving, false, memory_order_release);
    call_open();
}

static CUresult try_to_move(CUresult error)
{
    bool gone = error == CUDA_ERROR_MPS_RPC_FAILURE && !channel_sticky_error(&client->channel);
    uint32_t leave = channel_leave(&client->channel);
    struct recovery_snapshot snapshot = {
        .error = error, .is_settled = leave == LEAVE_SETTLED || leave == LEAVE_COPIES};

    if (recovery.off || (!gone && !recovery_is_possible(error)) || client_is_broken() ||
        !call_close(CLOSE_TIMEOUT_NS))
        return error;
    begin_move();
    error = move_if_allowed(&snapshot);
    if (error != CUDA_SUCCESS)
        channel_give_up(&client->channel, error);
    end_move();
    return error;
}

/* The thread that moves the client waits for answers, too, and must not wait for itself. */
static bool is_mover(void)
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

    if (is_mover())
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
static void follow_end(void)
{
    if (channel_error(&client->channel) != CUDA_SUCCESS)
        find_another_server();
}

/* ---- away from long kernels ---- */

/* The server asks the daemon, with 0 for `server` if others have long kernels. */
static bool ask_server(uint32_t server)
{
    const struct wire_fnMove in = {.handles = handles_count(&client->handles), .server = server};
    enum move_obstacle obstacle = recovery_find_obstacle();

    if (!obstacle) {
        CUresult result = wire_fnMove(&client->channel, &in);

        channel_mend(&client->channel);
        return result == CUDA_SUCCESS;
    }
    if (obstacle != recovery.told)
        client_log_to_file(CUDA_SUCCESS, "stays in its lane, %s: %s",
                           server ? "to which a name of cuIpc does not belong"
                                  : "perhaps beside long kernels",
                           move_obstacle_text(obstacle));
    recovery.told = obstacle;
    return false;
}

static bool may_ask(void)
{
    return !recovery.off && !recovery.hopeless && !client_is_broken() && call_is_outermost() &&
           channel_error(&client->channel) == CUDA_SUCCESS;
}

/* A thread that waits for the lock would keep the one that has it from closing the library. */
static bool ask_for_order(uint32_t server)
{
    bool is_asked = false;

    if (is_mover() || pthread_mutex_trylock(&recovery.lock))
        return false;
    call_park();
    if (may_ask() && call_close(server ? CLOSE_TIMEOUT_NS : CLOSE_BRIEFLY_NS)) {
        begin_move();
        is_asked = ask_server(server);
        end_move();
    }
    recovery.next_wish = clock_ns() + WISH_PAUSE_NS;
    call_unpark();
    pthread_mutex_unlock(&recovery.lock);
    return is_asked;
}

/* Whether there is one. The daemon gives it when the other lane is ready. A silent one is given up.
 */
static bool await_order(bool *ret_silent)
{
    const struct timespec interval = {.tv_nsec = LEAVE_POLL_NS};
    struct channel *channel = &client->channel;
    uint64_t until = clock_ns() + ORDER_TIMEOUT_NS;

    *ret_silent = false;
    call_park();
    while (channel_leave(channel) == LEAVE_PENDING && channel_alive(channel) &&
           channel_error(channel) == CUDA_SUCCESS) {
        if (clock_ns() > until)
            *ret_silent = channel_leave_change(channel, LEAVE_PENDING, LEAVE_NONE);
        nanosleep(&interval, NULL);
    }
    call_unpark_when_open();
    return channel_leave(channel) != LEAVE_NONE;
}

/* A lane that is occupied as well may be free a moment later. */
static void consider_better_lane(void)
{
    const struct timespec pause = {.tv_nsec = ASK_PAUSE_NS};
    uint64_t until = clock_ns() + ASK_TIMEOUT_NS;
    bool is_silent;

    if (clock_ns() < recovery.next_wish)
        return;
    while (ask_for_order(0) && !await_order(&is_silent)) {
        if (is_silent || clock_ns() >= until) {
            recovery.next_wish = clock_ns() + (is_silent ? SILENT_PAUSE_NS : REFUSED_PAUSE_NS);
            break;
        }
        nanosleep(&pause, NULL);
    }
    recovery_consider_leaving();
    follow_end();
}

/* ---- to the lane of a name of cuIpc ---- */

/* Another thread may be the one that moves the client. */
static bool await_move(uint64_t connection)
{
    const struct timespec pause = {.tv_nsec = LEAVE_POLL_NS};
    uint64_t until = clock_ns() + JOIN_TIMEOUT_NS;

    while (client->socket_inode == connection && channel_leave(&client->channel) &&
           channel_error(&client->channel) == CUDA_SUCCESS && clock_ns() < until) {
        recovery_consider_leaving();
        nanosleep(&pause, NULL);
    }
    return client->socket_inode != connection;
}

static bool join_lane(uint32_t server)
{
    uint64_t connection = client->socket_inode;
    bool is_silent,
        has_moved = ask_for_order(server) && await_order(&is_silent) && await_move(connection);

    follow_end();
    return has_moved;
}

/* ---- to another server, as the daemon has ordered it ---- */

static bool is_being_answered(struct channel *channel)
{
    uint32_t state = channel_leave(channel);

    return state == LEAVE_ASKED || state == LEAVE_COPIES;
}

/* The server waits for the work that it has read, and then reads no more. */
static bool await_grant(void)
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

    while (!attach_to_next(snapshot)) {
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
        result = settle(snapshot, variables);
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
                                               : settle(snapshot, variables);
    recovery.leave_timeout_ns = LEAVE_TIMEOUT_NS;
    recovery.next_wish = 0;
    if (snapshot->error == CUDA_SUCCESS) {
        client_log("has moved to another %s, with all that it had",
                   variables->device_change ? "device" : "server");
        return;
    }
    client_log_to_file(snapshot->error, "not everything could be made again with another server");
    channel_give_up(&client->channel, snapshot->error);
    recovery.hopeless = true;
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

static void leave(void)
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
    if (recovery.hopeless || clock_ns() < recovery.next_leave || client_is_broken() ||
        channel_leave(&client->channel) != LEAVE_WANTED)
        return;
    recovery.next_leave = clock_ns() + LEAVE_PAUSE_NS;
    if (!call_close(CLOSE_BRIEFLY_NS))
        return;
    begin_move();
    leave();
    end_move();
}

/* A thread that finds another one at it comes to rest in call_park_while_closed(). */
static void consider_leaving(void)
{
    if (!call_is_inside() || is_mover() || pthread_mutex_trylock(&recovery.lock))
        return;
    call_park();
    if (channel_error(&client->channel) == CUDA_SUCCESS)
        try_to_leave();
    call_unpark();
    pthread_mutex_unlock(&recovery.lock);
    follow_end();
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
    recovery_wish_hook = consider_better_lane;
    recovery_leave_hook = consider_leaving;
    recovery_join_hook = join_lane;
    client->channel.revive = revive;
}
