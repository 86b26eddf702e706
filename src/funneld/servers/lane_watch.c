/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_watch.h. */
#include "lane_watch.h"

#include <stdlib.h>
#include <string.h>

#include "client_class.h"
#include "client_record.h"
#include "clock.h"
#include "journal.h"
#include "lane.h"
#include "lane_move.h"
#include "lane_name.h"
#include "move_obstacle.h"
#include "server_process.h"
#include "standby.h"

/* An interval of which others share no more counts as one alone. */
#define ALONE_PERCENT 5u

/* A program waits when it did in so many intervals, one after the other. */
#define WAITS_MIN 2u

/* The same for one that loses too much by a move. */
#define LOSSES_MIN 2u

/* What the neighbors' kernels took before a move is compared with this much later. */
#define TRIAL_NS (5 * NS_PER_SEC)

#define NEIGHBORS_MAX 8u

struct neighbor {
    uint8_t token[HELLO_TOKEN_SIZE];
    uint64_t before_ns; /* of a launch */
};

/* A program that this has moved, or has moved back. */
struct lane_trial {
    struct list link;
    uint8_t token[HELLO_TOKEN_SIZE];
    bool is_moving, is_away, is_proven;
    bool has_failed;                          /* it comes back because the move did not pay */
    uint64_t moved_at, quiet_since, retry_at; /* clock_ns() */
    uint64_t stay_until;                      /* clock_ns(): after a return that was not possible */
    uint64_t before_ns; /* of a launch of its own before the move; 0 = not known */
    unsigned losses;    /* reports in which it lost too much, one after the other */
    struct neighbor neighbors[NEIGHBORS_MAX];
    unsigned neighbor_count;
};

/* ---- paces ---- */

static uint64_t sum_of(const uint64_t *values)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        sum += values[i];
    return sum;
}

static uint64_t difference(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static uint64_t average(uint64_t ns, uint64_t launches)
{
    return ns / (launches ? launches : 1);
}

void client_pace_note(struct client_pace *pace, const struct server_usage *usage, uint64_t now)
{
    const struct server_usage *seen = &pace->seen;
    uint64_t shared = difference(usage->shared_ns, seen->shared_ns);

    pace->busy_ns = difference(sum_of(usage->gpu_ns), sum_of(seen->gpu_ns));
    pace->sm_ns = difference(sum_of(usage->sm_ns), sum_of(seen->sm_ns));
    pace->shared_percent = pace->busy_ns ? 100 * shared / pace->busy_ns : 0;
    pace->launch_ns = pace->busy_ns < LANE_BUSY_NS
                          ? 0
                          : average(pace->busy_ns, difference(usage->launches, seen->launches));
    if (pace->launch_ns && pace->shared_percent <= ALONE_PERCENT)
        pace->alone_ns = pace->launch_ns;
    pace->seen = *usage;
    pace->at = now;
}

uint64_t client_pace_kernel_ns(const struct client_pace *pace)
{
    return pace->alone_ns ? pace->alone_ns : pace->launch_ns;
}

/* Of two programs that have never been alone each seems to have long kernels. Where one has been,
 * with short ones, it is the other. */
static bool has_the_long_ones(const struct client_pace *offender, const struct client_pace *pace)
{
    return client_pace_kernel_ns(offender) >= LANE_LONG_NS &&
           (offender->alone_ns || pace->alone_ns ||
            offender->sm_ns / LANE_DOMINANCE >= pace->sm_ns);
}

/* A launch of one that waits takes so long. */
static uint64_t least_wait_of(const struct client_pace *pace)
{
    uint64_t wait = pace->alone_ns + LANE_WAIT_NS, slow = LANE_SLOWDOWN * pace->alone_ns;

    if (!pace->alone_ns)
        return LANE_WAIT_UNKNOWN_NS;
    return slow < wait ? slow : wait;
}

bool client_pace_waits(const struct client_pace *pace, const struct client_pace *offender)
{
    return has_the_long_ones(offender, pace) && pace->launch_ns >= least_wait_of(pace) &&
           pace->shared_percent >= LANE_SHARED_PERCENT && pace->alone_ns < LANE_LONG_NS;
}

/* ---- trials ---- */

static struct lane_trial *find_trial(const struct daemon *daemon, const uint8_t *token)
{
    list_for_each (struct lane_trial, trial, &daemon->lane_trials, link)
        if (!memcmp(trial->token, token, HELLO_TOKEN_SIZE))
            return trial;
    return NULL;
}

static struct lane_trial *get_trial(struct daemon *daemon, const uint8_t *token)
{
    struct lane_trial *trial = find_trial(daemon, token);

    if (trial)
        return trial;
    trial = calloc(1, sizeof(*trial));
    if (!trial)
        return NULL;
    memcpy(trial->token, token, sizeof(trial->token));
    list_append(&daemon->lane_trials, &trial->link);
    return trial;
}

static void free_trial(struct lane_trial *trial)
{
    list_remove(&trial->link);
    free(trial);
}

/* One that moves is still known by its callback. One whose server has died comes back. */
void lane_watch_close(struct daemon *daemon)
{
    list_for_each_safe (struct lane_trial, trial, &daemon->lane_trials, link)
        if (!trial->is_moving && clock_ns() > trial->retry_at &&
            !client_record_find_token(daemon, trial->token))
            free_trial(trial);
}

/* Whether it is an obstacle that the program will keep. */
static bool lasts(int result)
{
    return result > LANE_MOVED && result < OBSTACLE_COUNT &&
           !move_obstacle_passes((enum move_obstacle)result);
}

static void on_moved_away(void *context, int result)
{
    struct lane_trial *trial = context;

    trial->is_moving = false;
    trial->is_away = result == LANE_MOVED;
    trial->is_proven = trial->has_failed = false;
    trial->losses = 0;
    trial->moved_at = trial->quiet_since = clock_ns();
    trial->retry_at = trial->moved_at + (lasts(result) ? LANE_OBSTACLE_NS : LANE_RETRY_NS);
}

static void on_moved_back(void *context, int result)
{
    struct lane_trial *trial = context;

    trial->is_moving = false;
    trial->is_away = result != LANE_MOVED;
    trial->moved_at = trial->quiet_since = clock_ns();
    trial->stay_until = trial->is_away ? trial->moved_at + LANE_STAY_NS : 0;
    if (!trial->has_failed)
        trial->retry_at = trial->moved_at;
}

static void move_back(struct client_record *record, struct lane_trial *trial, const char *why)
{
    journal_with(LOG_EVENT(record->identity.pid, 0), "Client %d moves to its first lane again: %s",
                 record->identity.pid, why);
    trial->is_moving = true;
    lane_move_order_gently(record, LANE_OF_CLASS, on_moved_back, trial);
}

/* ---- from the main lane ---- */

/* What its kernels are like is known, and no wish of a program or an operator stands against it. */
static bool may_move(const struct client_record *record)
{
    const struct lane_trial *trial = find_trial(record->server->daemon, record->token);

    return record->class == CLASS_NORMAL && record->attached && !record->is_of_job &&
           client_record_choice(record).class == CLASS_UNSET &&
           client_pace_kernel_ns(&record->pace) >= LANE_LONG_NS && record->pace.launch_ns &&
           clock_ns() - record->pace.at < LANE_FRESH_NS &&
           !lane_name_is_batch(record->server->name) &&
           !(trial && (trial->is_moving || trial->is_away || clock_ns() < trial->retry_at));
}

/* The one that takes most, where several have long kernels. */
static struct client_record *find_offender(struct server_process *server)
{
    struct client_record *most = NULL;

    list_for_each (struct client_record, record, &server->records, link)
        if (may_move(record) && (!most || record->pace.sm_ns > most->pace.sm_ns))
            most = record;
    return most;
}

static void add_neighbor(struct lane_trial *trial, const struct client_record *record)
{
    struct neighbor *neighbor = &trial->neighbors[trial->neighbor_count];

    if (trial->neighbor_count == NEIGHBORS_MAX)
        return;
    trial->neighbor_count++;
    memcpy(neighbor->token, record->token, sizeof(neighbor->token));
    neighbor->before_ns = record->pace.launch_ns;
}

static const struct client_record *count_waiting(struct server_process *server,
                                                 const struct client_record *offender,
                                                 struct lane_trial *trial)
{
    const struct client_record *first = NULL;

    trial->neighbor_count = 0;
    list_for_each (struct client_record, record, &server->records, link) {
        if (record == offender || record->pace.waits < WAITS_MIN ||
            !client_pace_waits(&record->pace, &offender->pace))
            continue;
        add_neighbor(trial, record);
        first = first ? first : record;
    }
    return first;
}

static double ms(uint64_t ns)
{
    return (double)ns / NS_PER_MS;
}

/* The next report may say that it still waits. */
static void start_lane_ahead(const struct client_record *offender)
{
    struct server_process *server = offender->server;
    uint64_t now = clock_ns();

    if (server->lane_ahead_at && now - server->lane_ahead_at < LANE_AHEAD_NS)
        return;
    server->lane_ahead_at = now;
    lane_move_prepare(offender, LANE_BATCH);
}

static void move_offender(struct server_process *server)
{
    struct client_record *offender = find_offender(server);
    struct lane_trial *trial = offender ? get_trial(server->daemon, offender->token) : NULL;
    const struct client_record *waiting = trial ? count_waiting(server, offender, trial) : NULL;

    if (!waiting)
        return;
    journal_with(
        LOG_EVENT(offender->identity.pid, 0),
        "Client %d moves to the batch lane at its next idle point, because its kernels take %.1f "
        "ms and others wait for them: a launch of client %d takes %.1f ms (%.2f ms alone)",
        offender->identity.pid, ms(client_pace_kernel_ns(&offender->pace)), waiting->identity.pid,
        ms(waiting->pace.launch_ns), ms(waiting->pace.alone_ns));
    trial->is_moving = true;
    trial->before_ns = offender->pace.launch_ns;
    lane_move_order_gently(offender, LANE_BATCH, on_moved_away, trial);
}

/* ---- and back ---- */

/* Whether a neighbor has short kernels now, or none at all that tell anything. */
static bool has_paid(const struct daemon *daemon, const struct lane_trial *trial)
{
    bool any = false;

    for (unsigned i = 0; i < trial->neighbor_count; i++) {
        const struct neighbor *neighbor = &trial->neighbors[i];
        const struct client_record *record = client_record_find_token(daemon, neighbor->token);

        if (!record || record->pace.at < trial->moved_at || !record->pace.launch_ns)
            continue;
        any = true;
        if (record->pace.launch_ns < LANE_LONG_NS &&
            record->pace.launch_ns <= neighbor->before_ns / 2)
            return true;
    }
    return !any;
}

/* Whether the program gets too little of the GPU in its new lane. */
static bool has_lost(const struct client_record *record, struct lane_trial *trial)
{
    const struct client_pace *pace = &record->pace;

    bool has_lost_now = trial->before_ns && pace->launch_ns > LANE_LOSS * trial->before_ns;

    trial->losses = has_lost_now ? trial->losses + 1 : 0;
    return trial->losses >= LOSSES_MIN;
}

static bool others_work(const struct server_process *server, uint64_t since)
{
    const struct server_process *other =
        lane_find_other(server->daemon, server->service, server->name);

    if (!other)
        return false;
    list_for_each (struct client_record, record, &other->records, link)
        if (record->pace.at >= since && record->pace.launch_ns)
            return true;
    return false;
}

static const char *find_reason_to_return(const struct client_record *record,
                                         struct lane_trial *trial)
{
    uint64_t now = clock_ns();

    if (others_work(record->server, now - LANE_QUIET_NS / 4))
        trial->quiet_since = now;
    if (record->pace.at > trial->moved_at + TRIAL_NS / 2 && record->pace.launch_ns &&
        record->pace.launch_ns < LANE_LONG_NS)
        return "its kernels are short now";
    if (now - trial->quiet_since >= LANE_QUIET_NS)
        return "no other program has had work for a while";
    trial->has_failed = has_lost(record, trial);
    if (trial->has_failed)
        return "its own launches take more than four times as long as before";
    if (trial->is_proven || now - trial->moved_at < TRIAL_NS)
        return NULL;
    trial->is_proven = true;
    trial->has_failed = !has_paid(record->server->daemon, trial);
    return trial->has_failed ? "the launches of the others take as long as before, or have long "
                               "kernels themselves"
                             : NULL;
}

/* A program that an earlier daemon has moved. */
static struct lane_trial *adopt(const struct client_record *record)
{
    struct lane_trial *trial = get_trial(record->server->daemon, record->token);

    if (!trial)
        return NULL;
    trial->is_away = trial->is_proven = true;
    trial->moved_at = trial->quiet_since = clock_ns();
    trial->retry_at = trial->moved_at + LANE_RETRY_NS;
    return trial;
}

static void consider_return(struct client_record *record)
{
    struct daemon *daemon = record->server->daemon;
    struct lane_trial *trial = find_trial(daemon, record->token);
    const char *why;

    if (client_record_choice(record).wish != LANE_BATCH)
        return;
    if (!trial)
        trial = adopt(record);
    if (!trial || !trial->is_away || trial->is_moving || clock_ns() < trial->stay_until)
        return;
    why = find_reason_to_return(record, trial);
    if (why)
        move_back(record, trial, why);
}

/* ---- reports ---- */

static const struct client_record *offender_beside(const struct client_record *record)
{
    const struct client_record *offender = find_offender(record->server);

    return offender == record ? NULL : offender;
}

/* Whether it waits, and has for how many reports. */
static void note_wait(struct client_record *record, const struct client_record *offender)
{
    bool waits = offender && client_pace_waits(&record->pace, &offender->pace);

    record->pace.waits = waits ? record->pace.waits + 1 : 0;
}

static void consider_move(const struct client_record *record, const struct client_record *offender)
{
    if (record->pace.waits)
        start_lane_ahead(offender);
    move_offender(record->server);
}

void lane_watch_note(struct client_record *record)
{
    const struct client_record *offender;

    client_pace_note(&record->pace, &record->last.usage, clock_ns());
    if (!record->server->daemon->lane_moves_on)
        return;
    offender = offender_beside(record);
    note_wait(record, offender);
    if (lane_name_is_batch(record->server->name))
        consider_return(record);
    else if (standby_small_device(record->server) < 0)
        consider_move(record, offender);
}
