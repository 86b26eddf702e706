/* SPDX-License-Identifier: Apache-2.0 */
/* See timeslice.h. */
#include "timeslice.h"

#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "lane_name.h"
#include "service.h"
#include "text.h"

/* A slice of 0 would starve its server while another always has work. */
#define LEAST_PERCENT 1u

/* A server that has kernels for less of the time leaves enough to the others. */
#define UNRESTED_PERCENT 90u

/* Heartbeats come twice a second. After a program has moved to the batch lane, those that waited
 * for it need some time for what they could not do meanwhile. */
#define UNRESTED_BEATS 8u

/* A batch lane without kernels for so many heartbeats has no work. */
#define WORK_BEATS 4u

uint32_t timeslice_of_policy(uint32_t policy)
{
    static const uint32_t lengths[] = {0, 1000, 5000, 20000};

    return lengths[policy];
}

uint64_t timeslice_of(uint32_t percent, uint32_t given, unsigned others, uint32_t usual)
{
    uint32_t left = given < 100 ? 100 - given : 0;

    if (!given)
        return usual;
    if (!percent && others)
        percent = left / others;
    if (percent < LEAST_PERCENT)
        percent = LEAST_PERCENT;
    return percent * TIMESLICE_PERIOD * (usual ? usual : TIMESLICE_DRIVER_US) / 100;
}

uint64_t timeslice_of_batch(uint32_t percent, uint64_t mains_us, unsigned batches,
                            uint32_t least_us)
{
    uint64_t us = mains_us * percent / (100 - percent) / (batches ? batches : 1);

    return us < least_us ? least_us : us;
}

/* A number of that variable, or what `value` was. */
static void read_number(const char *name, const char *unit, uint32_t least, uint32_t most,
                        uint32_t *value)
{
    const char *text = getenv(name);
    uint64_t number;

    if (!text || !*text)
        return;
    if (text_to_u64(text, &number) || number < least || number > most)
        journal("%s: \"%s\" is not a number of %u to %u; batch lanes get %u %s", name, text, least,
                most, *value, unit);
    else
        *value = (uint32_t)number;
}

void timeslice_read_environment(struct daemon *daemon)
{
    read_number("FUNNEL_BATCH_SHARE", "%", 0, TIMESLICE_BATCH_PERCENT_MAX, &daemon->batch_percent);
    read_number("FUNNEL_BATCH_SLICE", "us", TIMESLICE_BATCH_US, TIMESLICE_BATCH_MAX_US,
                &daemon->batch_slice_us);
}

static bool takes_time(const struct server_process *server)
{
    return server->state == SERVER_ACTIVE && server->role == SERVER_SERVING;
}

/* Lanes of the service that share its percentage. */
static unsigned count_lanes(const struct daemon *daemon, const char *service)
{
    unsigned count = 0;

    list_for_each (struct server_process, server, &daemon->servers, link)
        count += takes_time(server) && !strcmp(server->service, service) &&
                 !lane_name_is_batch(server->name);
    return count;
}

static uint32_t percent_of(const struct server_process *server)
{
    const struct service *service = service_find(server->daemon, server->service);
    uint32_t percent = service ? service->timeslice_percent : 0, share;

    if (!percent)
        return 0;
    share = percent / count_lanes(server->daemon, server->service);
    return share < LEAST_PERCENT ? LEAST_PERCENT : share;
}

static void send_slice(struct server_process *server, struct told_slice slice)
{
    const struct told_slice *told = &server->told_slice;
    struct server_set_timeslice message;

    if (told->us == slice.us && told->beside_batch == slice.beside_batch &&
        told->batch_has_share == slice.batch_has_share)
        return;
    server_message_init(&message, SERVER_SET_TIMESLICE, 0);
    message.us = slice.us;
    message.beside_batch = slice.beside_batch;
    message.batch_has_share = slice.batch_has_share;
    if (!connection_send(&server->connection, &message, sizeof(message), -1))
        server->told_slice = slice;
}

/* Of all servers that have time slices. */
struct shares {
    uint32_t given;  /* the sum of all percentages */
    unsigned others; /* servers without one */
    unsigned mains;  /* servers that are no batch lanes */
    unsigned batches;
    unsigned working_batches; /* whose programs have kernels */
};

static struct shares count_shares(const struct daemon *daemon)
{
    struct shares shares = {0};

    list_for_each (struct server_process, server, &daemon->servers, link) {
        bool is_batch = lane_name_is_batch(server->name);

        if (!takes_time(server))
            continue;
        shares.batches += is_batch;
        shares.working_batches += is_batch && server->work_beats;
        shares.mains += !is_batch;
        shares.given += is_batch ? 0 : percent_of(server);
        shares.others += !is_batch && !percent_of(server);
    }
    return shares;
}

/* Where batch lanes have no share, single holds are all that there is. */
static bool holds_gpu(const struct server_process *server)
{
    return server->held && server->daemon->batch_percent;
}

static uint64_t slice_of_main(const struct server_process *server, const struct shares *shares)
{
    uint32_t usual = server->daemon->timeslice_us;

    if (!usual && !shares->given)
        usual = timeslice_of_main(shares->batches, shares->mains, holds_gpu(server));
    return timeslice_of(percent_of(server), shares->given, shares->others, usual);
}

static bool never_rests(const struct server_process *server)
{
    return server->unrested_beats >= UNRESTED_BEATS || holds_gpu(server);
}

/* Of the main lanes that never rest, together; 0 = all rest. */
static uint64_t unrested_slices(const struct daemon *daemon, const struct shares *shares)
{
    uint64_t sum = 0, us;

    list_for_each (struct server_process, server, &daemon->servers, link) {
        if (!takes_time(server) || lane_name_is_batch(server->name) || !never_rests(server))
            continue;
        us = slice_of_main(server, shares);
        sum += us ? us : TIMESLICE_DRIVER_US;
    }
    return sum;
}

/* Once for each lane, as a program may rest and not rest in turn. */
static void log_share(struct server_process *lane)
{
    if (lane->share_logged)
        return;
    journal(
        "Batch lane %s (server %d) gets %u %% of the GPU's time while the main lane never rests",
        lane->name, (int)lane->pid, lane->daemon->batch_percent);
    lane->share_logged = true;
}

static void send_batch_slice(struct server_process *lane, uint64_t us)
{
    if (us > lane->daemon->batch_slice_us)
        log_share(lane);
    send_slice(lane, (struct told_slice){.us = us});
}

void timeslices_divide(struct daemon *daemon)
{
    const struct shares shares = count_shares(daemon);
    uint64_t unrested = unrested_slices(daemon, &shares);
    uint64_t batch =
        timeslice_of_batch(daemon->batch_percent, unrested, shares.batches, daemon->batch_slice_us);
    bool works = shares.working_batches && shares.mains == 1;

    list_for_each (struct server_process, server, &daemon->servers, link) {
        if (!takes_time(server))
            continue;
        if (lane_name_is_batch(server->name))
            send_batch_slice(server, batch);
        else
            send_slice(server, (struct told_slice){.us = slice_of_main(server, &shares),
                                                   .beside_batch = works,
                                                   .batch_has_share = works && holds_gpu(server)});
    }
}

static bool has_batch_programs(const struct daemon *daemon)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (lane_name_is_batch(server->name) && server->handed_over)
            return true;
    return false;
}

/* Whether that has changed. A lane that never rested while it had all programs may do so without
 * those of the batch lane. */
static bool note_unrested(struct server_process *server, struct timeslice_load load)
{
    bool before = never_rests(server), held_before = server->held;
    bool is_beside = has_batch_programs(server->daemon);

    server->unrested_beats =
        is_beside && load.percent >= UNRESTED_PERCENT ? server->unrested_beats + 1 : 0;
    server->held = is_beside && load.held;
    return never_rests(server) != before || server->held != held_before;
}

static bool note_work(struct server_process *server, uint32_t percent)
{
    bool before = server->work_beats > 0;

    if (percent)
        server->work_beats = WORK_BEATS;
    else
        server->work_beats -= before;
    return (server->work_beats > 0) != before;
}

void timeslice_note_load(struct server_process *server, struct timeslice_load load)
{
    bool changes = lane_name_is_batch(server->name) ? note_work(server, load.percent)
                                                    : note_unrested(server, load);

    if (changes)
        timeslices_divide(server->daemon);
}
