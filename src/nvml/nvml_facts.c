/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml_facts.h. */
#include "nvml_facts.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "paths.h"

#define LIFETIME_NS NS_PER_SEC
#define RETRY_NS (10 * NS_PER_SEC)
#define RATE_INTERVAL_NS \
    (200 * NS_PER_MS) /* with some hundred looks of the server at its streams */

static pthread_mutex_t facts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct facts facts;
static uint64_t retry_ns; /* no daemon is asked until then */

void facts_before_fork(void)
{
    pthread_mutex_lock(&facts_lock);
}

void facts_after_fork(void)
{
    pthread_mutex_unlock(&facts_lock);
}

/* ---- asking the daemon ---- */

static int64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}

static void forget_snapshot(struct snapshot *snapshot, uint64_t *taken_ns)
{
    if (*taken_ns)
        snapshot_fini(snapshot);
    *taken_ns = 0;
}

static void take_snapshot(void)
{
    struct snapshot snapshot;
    struct paths paths;

    if (paths_find_daemon(&paths) || snapshot_take_within(&paths, FACTS_TIMEOUT_MS, &snapshot)) {
        forget_snapshot(&facts.now, &facts.now_ns);
        forget_snapshot(&facts.before, &facts.before_ns);
        retry_ns = clock_ns() + RETRY_NS;
        return;
    }
    forget_snapshot(&facts.before, &facts.before_ns);
    facts.before = facts.now;
    facts.before_ns = facts.now_ns;
    facts.now = snapshot;
    facts.now_ns = clock_ns();
    facts.now_us = wall_us();
}

static void take_rates(void)
{
    const struct timespec pause = {.tv_nsec = (long)RATE_INTERVAL_NS};

    nanosleep(&pause, NULL);
    take_snapshot();
}

/* All threads that ask want the same answer, so they wait for the one that asks the daemon. */
const struct facts *facts_begin(bool needs_rates)
{
    int error = errno;

    pthread_mutex_lock(&facts_lock);
    if (facts.now_ns ? clock_ns() - facts.now_ns > LIFETIME_NS : clock_ns() >= retry_ns)
        take_snapshot();
    if (needs_rates && facts.now_ns && !facts.before_ns)
        take_rates();
    errno = error;
    if (facts.now_ns)
        return &facts;
    pthread_mutex_unlock(&facts_lock);
    return NULL;
}

void facts_end(const struct facts *unused)
{
    pthread_mutex_unlock(&facts_lock);
}

/* ---- clients ---- */

static unsigned device_count(const struct command_server *server)
{
    return server->device_count < SERVER_MAX_DEVICES ? server->device_count : SERVER_MAX_DEVICES;
}

bool facts_find_device(const struct command_server *server, const uint8_t uuid[16],
                       unsigned *ret_ordinal)
{
    for (unsigned i = 0; i < device_count(server); i++) {
        if (memcmp(server->devices[i].uuid, uuid, 16) != 0)
            continue;
        *ret_ordinal = i;
        return true;
    }
    return false;
}

bool facts_next_client(const struct facts *known, const uint8_t uuid[16], unsigned *cursor,
                       struct device_client *ret_client)
{
    while (*cursor < known->now.client_count) {
        const struct command_client *client = &known->now.clients[(*cursor)++];
        const struct command_server *server = snapshot_server_of(&known->now, client);
        unsigned ordinal;

        if (!facts_find_device(server, uuid, &ordinal) ||
            !(client->row.device_mask & 1ull << ordinal))
            continue;
        *ret_client = (struct device_client){client, (unsigned)client->seen_pid, ordinal,
                                             server->devices[ordinal].sm_count};
        return true;
    }
    return false;
}

/* Servers are in the daemon's PID namespace, where their numbers are those of the snapshot. */
bool facts_is_server(const struct facts *known, unsigned pid)
{
    for (unsigned i = 0; i < known->now.server_count; i++) {
        const struct command_server *server = &known->now.servers[i];

        if (server->seen_pid && server->seen_pid == server->pid &&
            (pid == (unsigned)server->pid ||
             (server->standby_pid && pid == (unsigned)server->standby_pid)))
            return true;
    }
    return false;
}

bool facts_serve(const struct facts *known, const uint8_t uuid[16])
{
    unsigned ordinal;

    for (unsigned i = 0; i < known->now.server_count; i++)
        if (facts_find_device(&known->now.servers[i], uuid, &ordinal))
            return true;
    return false;
}

/* ---- rates ---- */

static unsigned to_percent(double share)
{
    return share <= 0 ? 0 : share < 1 ? (unsigned)(100 * share + 0.5) : 100;
}

static double client_age_ns(const struct facts *known, const struct device_client *client)
{
    double us = (double)(known->now_us - client->client->row.identity.since * 1000000ll);

    return 1e3 * (us > 1e6 ? us : 1e6);
}

/* What the client has used since the snapshot before, or in its life if it was not there then. */
struct growth {
    double gpu_ns, sm_ns, shared_ns, ns;
};

static struct growth client_growth(const struct facts *known, const struct device_client *client)
{
    const struct command_client *then =
        known->before_ns ? snapshot_find_client(&known->before, client->client) : NULL;
    const struct server_usage *now = &client->client->row.usage, *before;
    unsigned i = client->ordinal;

    if (!then)
        return (struct growth){(double)now->gpu_ns[i], (double)now->sm_ns[i],
                               (double)now->shared_ns, client_age_ns(known, client)};
    before = &then->row.usage;
    return (struct growth){
        (double)(now->gpu_ns[i] - before->gpu_ns[i]), (double)(now->sm_ns[i] - before->sm_ns[i]),
        (double)(now->shared_ns - before->shared_ns), (double)(known->now_ns - known->before_ns)};
}

unsigned facts_sm_percent(const struct facts *known, const struct device_client *client)
{
    struct growth growth = client_growth(known, client);

    return client->sm_count ? to_percent(growth.sm_ns / growth.ns / client->sm_count) : 0;
}

unsigned facts_gpu_percent_of_life(const struct facts *known, const struct device_client *client)
{
    return to_percent((double)client->client->row.usage.gpu_ns[client->ordinal] /
                      client_age_ns(known, client));
}

/* The servers count for each client when it alone had kernels, and when another had some, too. The
 * times of the second kind overlap, and the longest of them covers the others for two clients, and
 * mostly for more. */
unsigned facts_busy_percent(const struct facts *known, const uint8_t uuid[16])
{
    struct device_client client;
    unsigned cursor = 0;
    double alone = 0, shared = 0;

    while (facts_next_client(known, uuid, &cursor, &client)) {
        struct growth growth = client_growth(known, &client);
        double both = growth.shared_ns < growth.gpu_ns ? growth.shared_ns : growth.gpu_ns;

        alone += (growth.gpu_ns - both) / growth.ns;
        shared = both / growth.ns > shared ? both / growth.ns : shared;
    }
    return to_percent(alone + shared);
}
