/* SPDX-License-Identifier: Apache-2.0 */
/* See recovery_snapshot.h. */
#include "recovery_snapshot.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "attach_socket.h"
#include "client_event.h"
#include "client_module.h"
#include "client_printf.h"
#include "client_stream.h"
#include "client_symbol.h"
#include "clock.h"
#include "cuda_error.h"
#include "replay.h"
#include "stream_commands.h"
#include "vmm_replay.h"
#include "wire_calls.h"

static void add_obstacle(struct recovery_snapshot *snapshot, enum move_obstacle obstacle)
{
    if (!snapshot->obstacle)
        snapshot->obstacle = obstacle;
}

/* What the server had read, it says, or said before it ended. */
static bool is_work_done(const struct recovery_snapshot *snapshot)
{
    return snapshot->is_planned || snapshot->is_settled;
}

static enum move_obstacle module_obstacle(const struct recovery_snapshot *snapshot,
                                          const struct module *module)
{
    switch (module->state) {
    case WIRE_STATE_NONE:
        return OBSTACLE_NONE;
    case WIRE_STATE_POINTERS:
        return OBSTACLE_POINTERS;
    case WIRE_STATE_CARRIED:
        return snapshot->is_planned ? OBSTACLE_NONE : OBSTACLE_VARIABLES;
    default:
        return OBSTACLE_VARIABLES;
    }
}

static void check_object(void *context, uint64_t handle, void *object)
{
    struct recovery_snapshot *snapshot = context;

    switch (handle_type(handle)) {
    case WIRE_STREAM:
        if (!is_work_done(snapshot) && stream_lost_work(object, snapshot->read))
            add_obstacle(snapshot, OBSTACLE_WORK);
        break;
    case WIRE_MODULE:
        add_obstacle(snapshot, module_obstacle(snapshot, object));
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
            add_obstacle(snapshot, OBSTACLE_PHYSICAL);
        break;
    default:
        add_obstacle(snapshot, OBSTACLE_ARRAY);
    }
}

static void check_work(void *context, uint64_t handle, void *object)
{
    if (handle_type(handle) == WIRE_STREAM)
        check_object(context, handle, object);
}

bool recovery_snapshot_lost_work(struct recovery_snapshot *snapshot)
{
    const unsigned char *unread;

    snapshot->read = client->channel.sent - channel_unread(&client->channel, &unread);
    handles_for_each(&client->handles, check_work, snapshot);
    return snapshot->obstacle != OBSTACLE_NONE;
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
static bool answers_will_come(struct recovery_snapshot *snapshot, struct recovery_asked *asked)
{
    struct recovery_slots *slots = &snapshot->slots;
    uint32_t left = busy_slots() & ~(slots->sent_again | slots->repeated);

    if (left && (snapshot->is_planned || !recovery_may_ask_again(asked, clock_ns())))
        return false;
    for (; left; left &= left - 1) {
        if (!ask_again(snapshot, __builtin_ctz(left)))
            return false;
    }
    return busy_slots() == (slots->sent_again | slots->repeated);
}

bool recovery_snapshot_take(struct recovery_snapshot *snapshot)
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

static void check_lasting(struct recovery_snapshot *snapshot)
{
    if (!attach_is_whole())
        add_obstacle(snapshot, OBSTACLE_DESCRIPTORS);
    if (!recovery_allows(client->channel.used))
        add_obstacle(snapshot, OBSTACLE_SHARED);
    if (!replay_has_memory())
        add_obstacle(snapshot, OBSTACLE_MEMORY_LIMIT);
    add_obstacle(snapshot, symbols_obstacle(snapshot->is_planned));
}

void recovery_snapshot_check(struct recovery_snapshot *snapshot, struct recovery_asked *asked)
{
    check_lasting(snapshot);
    if ((!is_work_done(snapshot) && !fence_orphans_passed()) ||
        cuda_error_is_fatal(snapshot->deferred))
        add_obstacle(snapshot, OBSTACLE_WORK);
    if (!recovery_sift(snapshot->messages, snapshot->size, &snapshot->size, &snapshot->slots) ||
        !answers_will_come(snapshot, asked) || symbols_occur(snapshot->messages, snapshot->size))
        add_obstacle(snapshot, OBSTACLE_CALL);
    handles_for_each(&client->handles, check_object, snapshot);
}

/* ---- of a client that has a server ---- */

/* Of work in flight the server knows. */
static void check_for_move(void *context, uint64_t handle, void *object)
{
    struct recovery_snapshot *snapshot = context;

    if (handle_type(handle) == WIRE_EVENT && event_has_time(object))
        add_obstacle(snapshot, OBSTACLE_TIME);
    check_object(context, handle, object);
}

enum move_obstacle recovery_find_obstacle(void)
{
    struct recovery_snapshot snapshot = {.is_planned = true};

    check_lasting(&snapshot);
    handles_for_each(&client->handles, check_for_move, &snapshot);
    if (busy_slots())
        add_obstacle(&snapshot, OBSTACLE_CALL);
    return snapshot.obstacle;
}
