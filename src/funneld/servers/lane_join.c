/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_join.h. */
#include "lane_join.h"

#include <string.h>

#include "client_class.h"
#include "client_record.h"
#include "journal.h"
#include "lane_move.h"
#include "lane_name.h"
#include "server_process.h"

static bool is_allowed(const struct client_record *record, enum lane_wish wish)
{
    switch (wish) {
    case LANE_OF_CLASS:
        return record->class != CLASS_UNSET;
    case LANE_JOINED:
        return record->class == CLASS_NORMAL && client_record_choice(record).class == CLASS_UNSET;
    case LANE_SPARE:
        return lane_name_is_main(record->server->name);
    case LANE_BATCH:
        break;
    }
    return false;
}

static bool find_wish(const struct client_record *record, const struct server_process *to,
                      enum lane_wish *ret_wish)
{
    static const enum lane_wish wishes[] = {LANE_OF_CLASS, LANE_JOINED, LANE_SPARE};

    for (unsigned i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
        *ret_wish = wishes[i];
        if (is_allowed(record, wishes[i]) && lane_move_leads_to(record, wishes[i], to->name))
            return true;
    }
    return false;
}

/* Another lane of the program's service. */
static const struct server_process *find_lane(const struct server_process *from, pid_t owner)
{
    const struct server_process *to = server_process_by_pid(from->daemon, owner);
    bool takes_programs =
        to && to->role == SERVER_SERVING && to->state == SERVER_ACTIVE && !to->stopping;

    return takes_programs && to != from && !strcmp(to->service, from->service) ? to : NULL;
}

void lane_join_ask(struct client_record *record, pid_t owner)
{
    const struct server_process *to = find_lane(record->server, owner);
    enum lane_wish wish;

    if (lane_move_comes_next(record))
        return;
    if (!to || lane_move_is_under_way(record) || !record->attached ||
        !find_wish(record, to, &wish)) {
        lane_move_refuse(record);
        return;
    }
    journal_with(LOG_EVENT(record->identity.pid, 0),
                 "Client %d moves to the lane %s, because it has a name of cuIpc from there",
                 record->identity.pid, lane_text(to->name));
    lane_move_answer(record, wish);
}
