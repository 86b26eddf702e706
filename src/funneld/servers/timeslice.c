/* SPDX-License-Identifier: Apache-2.0 */
/* See timeslice.h. */
#include "timeslice.h"

#include <string.h>

#include "lane_name.h"
#include "service.h"

/* A slice of 0 would starve its server while another always has work. */
#define LEAST_PERCENT 1u

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

static void send_slice(struct server_process *server, uint64_t us)
{
    struct server_set_timeslice message;

    if (server->timeslice_us == us)
        return;
    server_message_init(&message, SERVER_SET_TIMESLICE, 0);
    message.us = us;
    if (!connection_send(&server->connection, &message, sizeof(message), -1))
        server->timeslice_us = us;
}

/* Of all servers that have time slices. */
struct shares {
    uint32_t given;  /* the sum of all percentages */
    unsigned others; /* servers without one */
    unsigned mains;  /* servers that are no batch lanes */
    unsigned batches;
};

static struct shares count_shares(const struct daemon *daemon)
{
    struct shares shares = {0};

    list_for_each (struct server_process, server, &daemon->servers, link) {
        bool is_batch = lane_name_is_batch(server->name);

        if (!takes_time(server))
            continue;
        shares.batches += is_batch;
        shares.mains += !is_batch;
        shares.given += is_batch ? 0 : percent_of(server);
        shares.others += !is_batch && !percent_of(server);
    }
    return shares;
}

static uint64_t slice_of(const struct server_process *server, const struct shares *shares)
{
    uint32_t usual = server->daemon->timeslice_us;

    if (lane_name_is_batch(server->name))
        return TIMESLICE_BATCH_US;
    if (!usual && !shares->given)
        usual = timeslice_of_main(shares->batches, shares->mains);
    return timeslice_of(percent_of(server), shares->given, shares->others, usual);
}

void timeslices_divide(struct daemon *daemon)
{
    const struct shares shares = count_shares(daemon);

    list_for_each (struct server_process, server, &daemon->servers, link)
        if (takes_time(server))
            send_slice(server, slice_of(server, &shares));
}
