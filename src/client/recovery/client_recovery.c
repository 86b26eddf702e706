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
#include <time.h>

#include "cleanup.h"
#include "client_attach.h"
#include "client_call.h"
#include "client_event.h"
#include "client_log.h"
#include "client_module.h"
#include "client_printf.h"
#include "client_stream.h"
#include "clock.h"
#include "cuda_error.h"
#include "feature.h"
#include "recovery_hook.h"
#include "recovery_rules.h"
#include "replay.h"
#include "vmm_replay.h"
#include "wire_calls.h"

/* A server that has reported a fault ends at once, but its driver may take a while. */
#define END_TIMEOUT_NS (10 * NS_PER_SEC)
#define END_POLL_NS (2 * NS_PER_MS)

/* For how long other threads are waited for until they are outside the library: for a move to
 * another server, which the client needs, and to another context, which it can do without. */
#define CLOSE_TIMEOUT_NS (2 * NS_PER_SEC)
#define CLOSE_BRIEFLY_NS (5 * NS_PER_MS)

/* After a move to another context was not possible, or was made, the next is not tried so soon. */
#define MOVE_PAUSE_NS (200 * NS_PER_MS)

static struct recovery {
    pthread_mutex_t lock;
    pthread_t mover;    /* valid while moving */
    atomic_bool moving; /* atomic */
    bool off;
    bool hopeless;
    uint64_t next_move; /* clock_ns() */
    struct recovery_asked asked;
} recovery = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The state in which the last server has left this client. */
struct recovery_snapshot {
    uint64_t read; /* channel.sent up to which it may have read */
    unsigned char *messages;
    uint32_t size;
    struct recovery_slots slots;
    CUresult error, deferred;
    const char *obstacle;
};

/* ---- may it be moved? ---- */

static void add_obstacle(struct recovery_snapshot *snapshot, const char *obstacle)
{
    if (!snapshot->obstacle)
        snapshot->obstacle = obstacle;
}

static void check_object(void *context, uint64_t handle, void *object)
{
    struct recovery_snapshot *snapshot = context;

    switch (handle_type(handle)) {
    case WIRE_STREAM:
        if (stream_lost_work(object, snapshot->read))
            add_obstacle(snapshot, "it had work in flight");
        break;
    case WIRE_MODULE:
        if (((const struct module *)object)->has_state)
            add_obstacle(snapshot, "it has a module with variables");
        break;
    case WIRE_EVENT:
    case WIRE_FUNCTION:
    case WIRE_GRAPH:
    case CLIENT_LIBRARY:
    case CLIENT_KERNEL:
    case CLIENT_POOL:
    case CLIENT_CONTEXT:
    case CLIENT_GREEN:
    case CLIENT_RESOURCE:
        break;
    case WIRE_ALLOCATION:
        if (!vmm_physical_can_move(object))
            add_obstacle(snapshot, "it has physical memory without a descriptor");
        break;
    default:
        add_obstacle(snapshot, "it has an array, a texture or a linking job");
    }
}

static void check_work(void *context, uint64_t handle, void *object)
{
    if (handle_type(handle) == WIRE_STREAM)
        check_object(context, handle, object);
}

/* A server that runs on for a while can only read more. */
static bool is_lost_already(struct recovery_snapshot *snapshot)
{
    const unsigned char *unread;

    snapshot->read = client->channel.sent - channel_unread(&client->channel, &unread);
    handles_for_each(&client->handles, check_work, snapshot);
    return snapshot->obstacle != NULL;
}

static uint32_t busy_slots(void)
{
    return atomic_load_explicit(&client->channel.busy_slots, memory_order_acquire);
}

/* Appends behind the unread messages: no call waits for another thread's call. */
static bool append_message(struct recovery_snapshot *snapshot, const void *message,
                           const struct ring_message *header)
{
    unsigned char *messages = realloc(snapshot->messages, snapshot->size + header->size);

    if (!messages)
        return false;
    memcpy(messages + snapshot->size, message, header->size);
    memcpy(messages + snapshot->size, header, sizeof(*header));
    snapshot->messages = messages;
    snapshot->size += header->size;
    return true;
}

/* The server may have read the call that waits in this slot; its answer has not come. */
static bool ask_again(struct recovery_snapshot *snapshot, int slot)
{
    struct ring_message header;
    const void *message = channel_asked(&client->channel, slot, &header);
    enum recovery_rule rule =
        message ? recovery_rule(channel_kind_op(header.kind)) : RECOVERY_BINDS;

    if (rule == RECOVERY_REPEATS)
        snapshot->slots.repeated |= 1u << slot;
    else if (rule == RECOVERY_ASKS && append_message(snapshot, message, &header))
        snapshot->slots.sent_again |= 1u << slot;
    else
        return false;
    return true;
}

/* Whether every slot in use belongs to a thread that will get its answer, and no other does. */
static bool answers_will_come(struct recovery_snapshot *snapshot)
{
    struct recovery_slots *slots = &snapshot->slots;
    uint32_t left = busy_slots() & ~(slots->sent_again | slots->repeated);

    if (left && !recovery_may_ask_again(&recovery.asked, clock_ns()))
        return false;
    for (; left; left &= left - 1) {
        if (!ask_again(snapshot, __builtin_ctz(left)))
            return false;
    }
    return busy_slots() == (slots->sent_again | slots->repeated);
}

static void check_all(struct recovery_snapshot *snapshot)
{
    if (!attach_is_whole())
        add_obstacle(snapshot, "its descriptors were closed");
    if (!recovery_allows(client->channel.used))
        add_obstacle(snapshot, "it has shared something");
    if (!replay_has_memory())
        add_obstacle(snapshot, "it has a memory limit, and memory that only its server held");
    if (!fence_orphans_passed() || cuda_error_is_fatal(snapshot->deferred))
        add_obstacle(snapshot, "it had work in flight");
    if (!recovery_sift(snapshot->messages, snapshot->size, &snapshot->size, &snapshot->slots) ||
        !answers_will_come(snapshot))
        add_obstacle(snapshot, "it was in the middle of a call");
    handles_for_each(&client->handles, check_object, snapshot);
}

/* Partner: channel_break(). */
static bool client_is_broken(void)
{
    return atomic_load_explicit(&client->channel.broken, memory_order_relaxed);
}

/* ---- obstacles to a move ---- */

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

static bool take_snapshot(struct recovery_snapshot *snapshot)
{
    const unsigned char *unread;

    snapshot->size = channel_unread(&client->channel, &unread);
    snapshot->read = client->channel.sent - snapshot->size;
    snapshot->messages = malloc(snapshot->size + 1);
    if (!snapshot->messages)
        return false;
    memcpy(snapshot->messages, unread, snapshot->size);
    snapshot->deferred = channel_take_deferred_error(&client->channel);
    printf_output_take();
    return true;
}

static CUresult replay_and_resend(const struct recovery_snapshot *snapshot)
{
    CUresult result = replay_memory();

    if (result == CUDA_SUCCESS)
        result = replay_objects();
    if (result != CUDA_SUCCESS)
        return result;
    channel_defer_error(&client->channel, snapshot->deferred);
    channel_answer(&client->channel, snapshot->slots.repeated, CUDA_ERROR_NOT_FOUND);
    return channel_send_again(&client->channel, snapshot->messages, snapshot->size) == 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_MPS_RPC_FAILURE;
}

/* ---- the move ---- */

static CUresult move_client(struct recovery_snapshot *snapshot)
{
    char why[512] = "";
    CUresult result;

    if (!attach_again(why, sizeof(why))) {
        client_log_to_file(snapshot->error, "the client could not attach to another server: %s",
                           why);
        return snapshot->error;
    }
    result = replay_and_resend(snapshot);
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
                       snapshot->obstacle);
    return snapshot->error;
}

static CUresult move_if_allowed(struct recovery_snapshot *snapshot)
{
    CUresult result;

    if (!is_lost_already(snapshot)) {
        if (!has_ended() || !take_snapshot(snapshot))
            return snapshot->error;
        check_all(snapshot);
    }
    result = snapshot->obstacle ? stay(snapshot) : move_client(snapshot);
    free(snapshot->messages);
    return result;
}

static CUresult try_to_move(CUresult error)
{
    bool gone = error == CUDA_ERROR_MPS_RPC_FAILURE && !channel_sticky_error(&client->channel);
    struct recovery_snapshot snapshot = {.error = error};

    if (recovery.off || (!gone && !recovery_is_possible(error)) || client_is_broken() ||
        !call_close(CLOSE_TIMEOUT_NS))
        return error;
    recovery.mover = pthread_self();
    atomic_store_explicit(&recovery.moving, true, memory_order_release);
    error = move_if_allowed(&snapshot);
    atomic_store_explicit(&recovery.moving, false, memory_order_release);
    if (error != CUDA_SUCCESS)
        channel_give_up(&client->channel, error);
    call_open();
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

/* ---- to another context of the same server ---- */

static void check_for_move(void *context, uint64_t handle, void *object)
{
    struct recovery_snapshot *snapshot = context;

    /* Of work in flight the server knows. */
    if (handle_type(handle) == WIRE_STREAM)
        return;
    if (handle_type(handle) == WIRE_EVENT && event_has_time(object))
        add_obstacle(snapshot, "it has recorded an event with a time");
    if (handle_type(handle) == CLIENT_CONTEXT && ((const struct context *)object)->share)
        add_obstacle(snapshot, "it has a context with multiprocessors of its own");
    check_object(context, handle, object);
}

/* Nothing has been lost, so a client that cannot be moved stays. */
static const char *find_obstacle(void)
{
    struct recovery_snapshot snapshot = {0};

    if (!attach_is_whole() || !recovery_allows(client->channel.used) || vmm_is_used())
        add_obstacle(&snapshot, "it has shared or reserved something");
    if (busy_slots())
        add_obstacle(&snapshot, "it is in the middle of a call");
    handles_for_each(&client->handles, check_for_move, &snapshot);
    return snapshot.obstacle;
}

/* The client makes its objects again, or is lost. */
static void make_again(void)
{
    CUresult deferred = channel_take_deferred_error(&client->channel);
    CUresult error = replay_objects();

    channel_defer_error(&client->channel, deferred);
    if (error == CUDA_SUCCESS) {
        client_log("has moved to another context of its server, away from long kernels");
        return;
    }
    client_log_to_file(error, "not everything could be made again in another context: error %d",
                       error);
    channel_give_up(&client->channel, error);
    recovery.hopeless = true;
}

static void move_to_other_context(void)
{
    const struct wire_fnMove in = {.handles = handles_count(&client->handles)};
    const char *obstacle = find_obstacle();

    if (obstacle)
        client_log_to_file(CUDA_SUCCESS, "stays in its context, beside long kernels: %s", obstacle);
    else if (wire_fnMove(&client->channel, &in) == CUDA_SUCCESS)
        make_again();
    else
        channel_mend(&client->channel);
}

static void try_other_context(void)
{
    if (recovery.off || recovery.hopeless || clock_ns() < recovery.next_move ||
        channel_error(&client->channel) != CUDA_SUCCESS || client_is_broken() ||
        !call_is_outermost())
        return;
    if (call_close(CLOSE_BRIEFLY_NS)) {
        recovery.mover = pthread_self();
        atomic_store_explicit(&recovery.moving, true, memory_order_release);
        move_to_other_context();
        atomic_store_explicit(&recovery.moving, false, memory_order_release);
        call_open();
    }
    recovery.next_move = clock_ns() + MOVE_PAUSE_NS;
}

/* A thread that waits for the lock would keep the one that has it from closing the library. */
static void consider_other_context(void)
{
    if (is_mover() || pthread_mutex_trylock(&recovery.lock))
        return;
    call_park();
    try_other_context();
    call_unpark();
    pthread_mutex_unlock(&recovery.lock);
    /* It may have found that the server has ended. */
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
    recovery.off = feature_is_off(FEATURE_RECOVERY);
    recovery_hook = find_another_server;
    recovery_move_hook = consider_other_context;
    client->channel.revive = revive;
}
