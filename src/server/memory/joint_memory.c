/* SPDX-License-Identifier: Apache-2.0 */
/* See joint_memory.h. */
#include "joint_memory.h"

#include <unistd.h>

#include "log.h"
#include "memory_state.h"

void joint_memory_init(struct joint_memory *joint)
{
    pthread_mutex_init(&joint->lock, NULL);
}

static struct joint_memory *joint_of(const struct session *session)
{
    return &session->server->memory->joint;
}

static unsigned column_of(const struct session *session, struct joint_ledger *ledger,
                          unsigned device)
{
    return joint_ledger_column(ledger, session->server->devices.device[device].record.uuid);
}

/* ---- rows: the main thread ---- */

/* The session's thread writes behind each change what it has then. Pairs with joint_memory_note():
 * when that has not seen the row yet, this sees the change. */
static void enter_used(struct session *session, struct joint_row *row, unsigned column,
                       unsigned device)
{
    const struct device_usage *usage = &session->memory->device[device];
    uint64_t used;

    do {
        used = usage->used;
        atomic_store(&row->used[column], used);
    } while (usage->used != used);
}

static void set_row(struct session *session, struct joint_ledger *ledger, struct joint_row *row)
{
    for (unsigned i = 0; i < JOINT_LIMITS; i++)
        atomic_store(&row->key[i], session->limits.joint_key[i]);
    session->memory->joint = row;
    for (unsigned i = 0; i < session->server->devices.count; i++)
        enter_used(session, row, column_of(session, ledger, i), i);
}

static bool has_joint_limits(const struct session *session)
{
    for (unsigned i = 0; i < JOINT_LIMITS; i++)
        if (session->limits.joint_key[i])
            return true;
    return false;
}

/* A row stays the client's until it ends, because its thread may be writing it. */
void joint_memory_follow(struct session *session)
{
    struct joint_ledger *ledger = joint_of(session)->ledger;
    struct joint_row *row = session->memory->joint;

    if (!ledger || (!row && !has_joint_limits(session)))
        return;
    if (!row)
        row = joint_ledger_take(ledger, getpid());
    if (row)
        set_row(session, ledger, row);
    else
        log_line("Client " CLIENT_FORMAT " is not counted under its joint limits: %u clients are",
                 CLIENT_ARGS(session), JOINT_ROWS);
}

void joint_memory_leave(struct session *session)
{
    if (session->memory->joint)
        joint_ledger_give_back(session->memory->joint);
}

/* The old ledger stays mapped, because threads of sessions may be writing their rows. */
void joint_memory_use(struct server *server, struct joint_ledger *ledger)
{
    server->memory->joint.ledger = ledger;
    list_for_each (struct session, session, &server->sessions, link) {
        session->memory->joint = NULL;
        joint_memory_follow(session);
    }
}

/* ---- charges: the session's thread ---- */

void joint_memory_note(struct session *session, unsigned device)
{
    struct joint_row *row = session->memory->joint;
    struct joint_ledger *ledger = joint_of(session)->ledger;

    if (row && ledger)
        atomic_store(&row->used[column_of(session, ledger, device)],
                     session->memory->device[device].used);
}

static uint64_t sum_of(const struct session *session, struct joint_ledger *ledger, unsigned limit,
                       unsigned device)
{
    return joint_ledger_sum(ledger, limit, session->limits.joint_key[limit],
                            column_of(session, ledger, device));
}

/* The limit that is exceeded, or JOINT_LIMITS. The row of the client has the new bytes. */
static unsigned find_exceeded(const struct session *session, struct joint_ledger *ledger,
                              unsigned device, uint64_t *ret_sum)
{
    for (unsigned i = 0; i < JOINT_LIMITS; i++) {
        uint64_t most = session->limits.joint[i][device];

        if (most && (*ret_sum = sum_of(session, ledger, i, device)) > most)
            return i;
    }
    return JOINT_LIMITS;
}

static void log_exceeded(struct session *session, unsigned limit, unsigned device, uint64_t sum,
                         uint64_t size)
{
    static const char *const whose[] = {[JOINT_USER] = "user",
                                        [JOINT_GROUP] = "group",
                                        [JOINT_CONTAINER] = "container",
                                        [JOINT_CONTROL_GROUP] = "control group"};

    session_log_error(
        session,
        "out of memory: it wants %llu KiB more of device %u. The programs of its %s have %llu MiB "
        "together, and their joint limit is %llu MiB",
        (unsigned long long)(size >> 10), device, whose[limit],
        (unsigned long long)((sum - size) >> 20),
        (unsigned long long)(session->limits.joint[limit][device] >> 20));
}

/* Clients of other servers may ask at the same time. Each enters its bytes first and adds up then,
 * so that all of them together never get more than there is. */
static bool reserve_locked(struct session *session, struct joint_ledger *ledger, unsigned device,
                           uint64_t size)
{
    _Atomic uint64_t *used =
        &((struct joint_row *)session->memory->joint)->used[column_of(session, ledger, device)];
    uint64_t before = session->memory->device[device].used, sum = 0;

    if (size > UINT64_MAX / 2)
        return false;
    atomic_store(used, before + size);
    unsigned exceeded = find_exceeded(session, ledger, device, &sum);
    if (exceeded < JOINT_LIMITS && joint_ledger_drop_dead(ledger))
        exceeded = find_exceeded(session, ledger, device, &sum);
    if (exceeded == JOINT_LIMITS)
        return true;
    atomic_store(used, before);
    log_exceeded(session, exceeded, device, sum, size);
    return false;
}

bool joint_memory_reserve(struct session *session, unsigned device, uint64_t size)
{
    struct joint_memory *joint = joint_of(session);
    struct joint_ledger *ledger = joint->ledger;

    if (!ledger || !session->memory->joint)
        return true;
    pthread_mutex_lock(&joint->lock);
    bool fits = reserve_locked(session, ledger, device, size);
    pthread_mutex_unlock(&joint->lock);
    return fits;
}

uint64_t joint_memory_left(struct session *session, unsigned device)
{
    struct joint_ledger *ledger = joint_of(session)->ledger;
    uint64_t left = UINT64_MAX;

    for (unsigned i = 0; ledger && i < JOINT_LIMITS; i++) {
        uint64_t most = session->limits.joint[i][device], sum;

        if (!most)
            continue;
        sum = sum_of(session, ledger, i, device);
        sum = sum < most ? most - sum : 0;
        left = sum < left ? sum : left;
    }
    return left;
}
