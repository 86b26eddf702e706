/* SPDX-License-Identifier: Apache-2.0 */
/* See wished_move.h. */
#include "wished_move.h"

#include <time.h>

#include "client_call.h"
#include "client_log.h"
#include "clock.h"
#include "recovery_hook.h"
#include "recovery_snapshot.h"
#include "recovery_state.h"
#include "wire_calls.h"

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
    return !recovery.off && !recovery.hopeless && !recovery_is_cut_off() && call_is_outermost() &&
           channel_error(&client->channel) == CUDA_SUCCESS;
}

/* The calling thread is parked. */
static bool ask_locked(uint32_t server)
{
    bool is_asked = false;

    if (may_ask() && call_close(server ? CLOSE_TIMEOUT_NS : CLOSE_BRIEFLY_NS)) {
        recovery_begin_move();
        is_asked = ask_server(server);
        recovery_end_move();
    }
    recovery.next_wish = clock_ns() + WISH_PAUSE_NS;
    return is_asked;
}

/* A thread that finds another one at it does without. */
static bool ask_for_order(void)
{
    if (recovery_is_mover() || pthread_mutex_trylock(&recovery.lock))
        return false;
    call_park();
    bool is_asked = ask_locked(0);
    call_unpark();
    pthread_mutex_unlock(&recovery.lock);
    return is_asked;
}

/* Another thread may have asked already, perhaps for the same lane. */
static bool ask_to_join(uint32_t server)
{
    if (recovery_is_mover())
        return false;
    call_park();
    pthread_mutex_lock(&recovery.lock);
    bool is_asked = channel_leave(&client->channel) != LEAVE_NONE || ask_locked(server);
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
void wished_move_consider(void)
{
    const struct timespec pause = {.tv_nsec = ASK_PAUSE_NS};
    uint64_t until = clock_ns() + ASK_TIMEOUT_NS;
    bool is_silent;

    if (clock_ns() < recovery.next_wish)
        return;
    while (ask_for_order() && !await_order(&is_silent)) {
        if (is_silent || clock_ns() >= until) {
            recovery.next_wish = clock_ns() + (is_silent ? SILENT_PAUSE_NS : REFUSED_PAUSE_NS);
            break;
        }
        nanosleep(&pause, NULL);
    }
    recovery_consider_leaving();
    recovery_follow_end();
}

/* Another thread may be the one that moves the client. */
static void await_move(uint64_t connection)
{
    const struct timespec pause = {.tv_nsec = LEAVE_POLL_NS};
    uint64_t until = clock_ns() + JOIN_TIMEOUT_NS;

    while (client->socket_inode == connection && channel_leave(&client->channel) &&
           channel_error(&client->channel) == CUDA_SUCCESS && clock_ns() < until) {
        recovery_consider_leaving();
        call_park_while_closed();
        nanosleep(&pause, NULL);
    }
}

void wished_move_join(uint32_t server)
{
    uint64_t connection = client->socket_inode;
    bool is_silent;

    if (ask_to_join(server) && await_order(&is_silent))
        await_move(connection);
    recovery_follow_end();
}
