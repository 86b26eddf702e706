/* SPDX-License-Identifier: Apache-2.0 */
/* See standby.h. The serving server has the timer that starts its standby. */
#include "standby.h"

#include <string.h>

#include "journal.h"
#include "lane_name.h"
#include "server_process.h"
#include "server_start.h"
#include "service.h"
#include "text.h"
#include "timeslice.h"

/* Starting a driver takes time of the CPUs and of the GPU, which the programs that have moved can
 * use better at first. A standby that has ended by itself may do so again. */
#define PAUSE_MS 300
#define PAUSE_AFTER_END_MS 10000

/* A standby may take this part of a device's memory. */
#define MEMORY_PART 16

struct server_process *standby_of(const struct server_process *server)
{
    list_for_each (struct server_process, other, &server->daemon->servers, link)
        if (other->role == SERVER_STANDBY && !other->stopping && !strcmp(other->name, server->name))
            return other;
    return NULL;
}

uint32_t standby_memory_mib(const struct server_process *server)
{
    uint32_t most = 0;

    for (unsigned i = 0; i < server->ready.device_count; i++) {
        uint32_t mib = server->ready.devices[i].own_mib;

        most = mib > most ? mib : most;
    }
    return most;
}

/* ---- starting one ---- */

static void plan(const struct server_process *server, int ms)
{
    const struct timeval pause = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    if (server->standby_timer)
        evtimer_add(server->standby_timer, &pause);
}

int standby_small_device(const struct server_process *server)
{
    for (unsigned i = 0; i < server->ready.device_count; i++) {
        const struct server_device *device = &server->ready.devices[i];

        if (device->own_mib > (device->memory_total >> 20) / MEMORY_PART)
            return (int)i;
    }
    return -1;
}

static void start_standby(struct server_process *server)
{
    struct server_process *standby;
    int error = server_process_start_another(server, SERVER_STANDBY, &standby);

    if (error)
        journal("Server %d has no standby: %s", (int)server->pid,
                server_process_start_error(error));
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    struct server_process *server = context;
    uid_t before = journal_account(server->owner);

    if (server->role == SERVER_SERVING && !server->stopping && !standby_of(server))
        start_standby(server);
    journal_account(before);
}

void standby_begin(struct server_process *server)
{
    int small = standby_small_device(server);

    if (!server->daemon->standby || server->stopping || !lane_name_is_main(server->name))
        return;
    if (small >= 0) {
        journal("Server %d has no standby, because that would take more than 1/%d of the memory of "
                "device %d",
                (int)server->pid, MEMORY_PART, small);
        return;
    }
    server->standby_timer = evtimer_new(server->daemon->base, on_timer, server);
    plan(server, PAUSE_MS);
}

/* ---- its end ---- */

void standby_dismiss(const struct server_process *server)
{
    struct server_process *standby = server->role == SERVER_SERVING ? standby_of(server) : NULL;

    if (standby)
        server_process_stop(standby, true);
}

/* One that could not even start would not start the next time. */
void standby_ended(const struct server_process *standby)
{
    struct server_process *server = server_process_find(standby->daemon, standby->name);

    if (!server || server->stopping)
        return;
    if (standby->state != SERVER_INITIALIZING)
        plan(server, PAUSE_AFTER_END_MS);
    else
        journal("Server %d has no standby: %s", (int)server->pid,
                *standby->failure_text ? standby->failure_text
                                       : "it has ended while it started; see server.log");
}

/* ---- serving ---- */

static void begin_serving(struct server_process *standby)
{
    if (standby->state != SERVER_ACTIVE)
        return;
    service_server_ready(standby);
    timeslices_divide(standby->daemon);
    standby_begin(standby);
}

static struct server_process *ready_standby_of(const struct server_process *server)
{
    struct server_process *standby = server ? standby_of(server) : NULL;

    return standby && standby->state == SERVER_ACTIVE && !server_process_has_died(standby) ? standby
                                                                                           : NULL;
}

/* Where kernels run on CPUs, the threads of a batch lane give way to others from its start on. */
static bool may_become(const struct server_process *standby, const char *name)
{
    char batch[SERVER_NAME_MAX];

    lane_name(standby->service, true, "", batch);
    return lane_name_has_domain(name, LANE_DOMAIN_SPARE) ||
           (!strcmp(name, batch) && standby->ready.driver == SERVER_DRIVER_CUDA);
}

struct server_process *standby_become_lane(const struct daemon *daemon,
                                           const struct server_route *route)
{
    struct server_process *main_lane, *standby;
    char service[SERVER_NAME_MAX];

    lane_name_service(route->name, service);
    main_lane = server_process_find(daemon, service);
    standby = ready_standby_of(main_lane);
    if (!standby || !may_become(standby, route->name))
        return NULL;
    text_copy(standby->name, sizeof(standby->name), route->name);
    standby->role = SERVER_SERVING;
    standby->limits = main_lane->limits;
    server_file_save(standby);
    journal("Server %d, which has stood by for server %d, is the lane %s from now on",
            (int)standby->pid, (int)main_lane->pid, lane_text(standby->name));
    begin_serving(standby);
    plan(main_lane, PAUSE_MS);
    return standby;
}

bool standby_take_over(struct server_process *server)
{
    struct server_process *standby = standby_of(server);

    if (!standby || server_process_has_died(standby))
        return false;
    server->role = SERVER_REPLACED;
    standby->role = SERVER_SERVING;
    standby->limits = server->limits;
    server_file_save(server);
    server_file_save(standby);
    journal("Server %d takes the place of server %d: it has stood by, and %s", (int)standby->pid,
            (int)server->pid,
            standby->state == SERVER_ACTIVE ? "is ready" : "will be ready sooner than a new one");
    begin_serving(standby);
    return true;
}
