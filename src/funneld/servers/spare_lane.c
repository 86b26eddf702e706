/* SPDX-License-Identifier: Apache-2.0 */
/* See spare_lane.h. */
#include "spare_lane.h"

#include "client_record.h"
#include "journal.h"
#include "lane_move.h"
#include "lane_name.h"
#include "server_process.h"

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

bool spare_lane_is_better(const struct daemon *daemon, const char *service)
{
    return daemon->spare_lane_on && !daemon->spare &&
           has_long_work(server_process_find(daemon, service)) &&
           !has_long_work(find_spare_lane(daemon, service));
}

/* lane_move.h logs why a program stays. It is not asked again. */
static void on_moved(void *context, int result)
{
}

static void order_return(struct client_record *record)
{
    record->is_returning = true;
    journal_with(LOG_EVENT(record->identity.pid, 0),
                 "Client %d moves to the main lane at its next idle point, because no long kernels "
                 "run there any more",
                 record->identity.pid);
    lane_move_order_gently(record, LANE_OF_CLASS, on_moved, NULL);
}

void spare_lane_return(struct server_process *main_lane)
{
    const struct heartbeat *heartbeat = &main_lane->heartbeat;
    struct server_process *spare;

    if (!main_lane->daemon->spare_lane_on || !lane_name_is_main(main_lane->name) ||
        main_lane->stopping || heartbeat->heard - heartbeat->long_work_seen < SPARE_LANE_RETURN_NS)
        return;
    spare = find_spare_lane(main_lane->daemon, main_lane->service);
    if (!spare || spare->state != SERVER_ACTIVE || spare->stopping)
        return;
    list_for_each_safe (struct client_record, record, &spare->records, link)
        if (record->attached && !record->is_returning)
            order_return(record);
}
