/* SPDX-License-Identifier: Apache-2.0 */
/* See spare_lane.h. */
#include "spare_lane.h"

#include "client_record.h"
#include "journal.h"
#include "lane_move.h"
#include "lane_name.h"
#include "server_process.h"
#include "standby.h"

static struct server_process *find_spare_lane(const struct daemon *daemon, const char *service)
{
    char name[SERVER_NAME_MAX];

    lane_name(service, false, LANE_DOMAIN_SPARE, name);
    return server_process_find(daemon, name);
}

static bool has_long_work(const struct server_process *server)
{
    return server && server->state == SERVER_ACTIVE && !server->stopping &&
           server->heartbeat.has_long_work;
}

static bool has_its_code(const struct server_process *server, const struct client_program *program)
{
    uint64_t hash = client_program_hash(program), now = clock_ns();

    if (known_programs_has(&server->served, program))
        return true;
    list_for_each (struct client_record, record, &server->records, link)
        if (record->attached && now - record->given_ns >= SPARE_LANE_LOADED_NS &&
            client_program_hash(&record->program) == hash)
            return true;
    return false;
}

/* Programs need not wait for the start of the lane. */
static bool is_warm(const struct server_process *main_lane, const struct server_process *spare)
{
    const struct server_process *standby = spare ? NULL : standby_of(main_lane);

    return spare ? spare->state == SERVER_ACTIVE && !spare->stopping
                 : standby && standby->state == SERVER_ACTIVE;
}

/* The kernels are worth the start of the lane. */
static bool is_worth_it(const struct server_process *main_lane)
{
    const struct heartbeat *heartbeat = &main_lane->heartbeat;

    return has_long_work(main_lane) &&
           heartbeat->heard - heartbeat->long_work_began >= SPARE_LANE_START_NS &&
           standby_small_device(main_lane) < 0;
}

static bool is_usable(const struct server_process *main_lane, const struct server_process *spare)
{
    return is_warm(main_lane, spare) ? !has_long_work(spare) : spare || is_worth_it(main_lane);
}

bool spare_lane_is_better(const struct daemon *daemon, const char *service,
                          const struct client_program *program)
{
    const struct server_process *main_lane = server_process_find(daemon, service);

    return daemon->spare_lane_on && has_long_work(main_lane) &&
           is_usable(main_lane, find_spare_lane(daemon, service)) &&
           !has_its_code(main_lane, program);
}

/* It is not asked again. */
static void order_return(struct client_record *record)
{
    record->is_returning = true;
    journal_with(LOG_EVENT(record->identity.pid, 0),
                 "Client %d moves to the main lane at its next idle point, because no long kernels "
                 "run there any more",
                 record->identity.pid);
    lane_move_order_gently(record, LANE_OF_CLASS, NULL, NULL);
}

/* A program in the main lane. Where it would have to wait for the start of the lane, it waits for
 * the kernel as well. That is so if the server may have its code. */
static bool may_leave(const struct client_record *record)
{
    const struct server_process *server = record->server;
    const struct server_process *spare = find_spare_lane(server->daemon, server->service);

    return server->daemon->spare_lane_on && lane_name_is_main(server->name) &&
           server->state == SERVER_ACTIVE && !server->stopping && record->attached &&
           !record->is_of_job && is_usable(server, spare) &&
           (is_warm(server, spare) || !has_its_code(server, &record->program));
}

void spare_lane_ask(struct client_record *record)
{
    if (lane_move_comes_next(record))
        return;
    if (lane_move_is_under_way(record) || !may_leave(record)) {
        lane_move_refuse(record);
        return;
    }
    journal_with(LOG_EVENT(record->identity.pid, 0),
                 "Client %d moves to the spare lane, because it is about to load code, and long "
                 "kernels run in the main lane",
                 record->identity.pid);
    lane_move_answer(record, LANE_SPARE);
}

void spare_lane_return(struct server_process *main_lane)
{
    const struct heartbeat *heartbeat = &main_lane->heartbeat;
    struct server_process *spare;

    if (!main_lane->daemon->spare_lane_on || !lane_name_is_main(main_lane->name) ||
        main_lane->role != SERVER_SERVING || main_lane->stopping ||
        heartbeat->heard - heartbeat->long_work_seen < SPARE_LANE_RETURN_NS)
        return;
    spare = find_spare_lane(main_lane->daemon, main_lane->service);
    if (!spare || spare->state != SERVER_ACTIVE || spare->stopping)
        return;
    list_for_each_safe (struct client_record, record, &spare->records, link)
        if (record->attached && !record->is_returning)
            order_return(record);
}
