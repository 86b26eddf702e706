/* SPDX-License-Identifier: Apache-2.0 */
/* See client_routes.h. */
#include "client_routes.h"

#include <limits.h>
#include <string.h>

#include "client_class.h"
#include "control_group.h"
#include "group_memory.h"
#include "journal.h"
#include "lane.h"
#include "quarantine.h"
#include "service.h"
#include "text.h"

/* ---- by control group ---- */

static bool any_names_a_group(const struct daemon *daemon)
{
    list_for_each (struct service, service, &daemon->services, link)
        list_for_each (struct mps_namespace, space, &service->namespaces, link)
            if (*space->cgroup)
                return true;
    return false;
}

bool client_routes_need_groups(const struct daemon *daemon)
{
    return any_names_a_group(daemon) || group_memory_is_there(CONTROL_GROUP_ROOT);
}

struct mps_namespace *client_routes_by_group(const struct daemon *daemon, const char *groups)
{
    struct mps_namespace *found = NULL;
    int nearest = INT_MAX;

    list_for_each (struct service, service, &daemon->services, link) {
        list_for_each (struct mps_namespace, space, &service->namespaces, link) {
            int levels = control_groups_levels_below(groups, space->cgroup);

            if (levels < 0 || (uint32_t)levels > space->cgroup_depth || levels >= nearest)
                continue;
            nearest = levels;
            found = space;
        }
    }
    return found;
}

/* ---- the server ---- */

static void add_other(struct client_routes *routes, const char *name, bool may_start)
{
    struct other_route *other = &routes->other[routes->other_count++];

    text_copy(other->name, sizeof(other->name), name);
    other->may_start = may_start;
}

/* The first route becomes the server of that name, and the present one the other that may start. */
static void prefer(struct client_routes *routes, const char *name)
{
    add_other(routes, routes->first.name, true);
    text_copy(routes->first.name, sizeof(routes->first.name), name);
}

/* The programs of a user that connected to the daemon's own socket. A program in quarantine stays
 * out of both lanes, whatever its class. */
static void choose_of_user(const struct daemon *daemon, const struct server_identity *identity,
                           const struct client_program *program, struct client_routes *routes)
{
    char quarantine[SERVER_NAME_MAX], batch[SERVER_NAME_MAX];

    quarantine_name_server(identity->uid, quarantine);
    lane_name_batch(routes->first.name, batch);
    if (quarantine_holds(daemon, identity, program)) {
        prefer(routes, quarantine);
        return;
    }
    if (routes->class == CLASS_BATCH)
        prefer(routes, batch);
    else
        add_other(routes, batch, false);
    add_other(routes, quarantine, false);
}

static void choose_of_service(struct client_routes *routes)
{
    char batch[SERVER_NAME_MAX];

    lane_name_batch(routes->first.name, batch);
    if (routes->class == CLASS_BATCH)
        prefer(routes, batch);
    else
        add_other(routes, batch, false);
}

void client_routes_find(const struct daemon *daemon, const struct server_identity *identity,
                        const struct client_program *program, uint32_t asked,
                        struct mps_namespace **space, struct client_routes *ret_routes)
{
    struct client_routes routes = {.other_count = 0};
    uid_t uid = daemon->multiuser ? daemon->server_uid : identity->uid;
    gid_t gid = daemon->multiuser ? (gid_t)daemon->server_uid : identity->gid;
    bool is_named = *space != NULL;

    routes.first = is_named ? service_route((*space)->service)
                            : service_route_of_user(daemon, uid, gid, space);
    routes.class = limit_rules_class(&daemon->rules, identity,
                                     *space ? (*space)->change.class : CLASS_UNSET, asked);
    if (is_named)
        choose_of_service(&routes);
    else
        choose_of_user(daemon, identity, program, &routes);
    *ret_routes = routes;
}

static bool take_next(const struct daemon *daemon, struct client_routes *routes)
{
    const struct other_route next = routes->other[0];

    routes->other_count--;
    memmove(routes->other, routes->other + 1, routes->other_count * sizeof(next));
    if (!next.may_start && !server_process_find(daemon, next.name))
        return false;
    journal("The server %s cannot be started, so a program of it shares the server %s",
            routes->first.name, next.name);
    text_copy(routes->first.name, sizeof(routes->first.name), next.name);
    return true;
}

bool client_routes_change(const struct daemon *daemon, struct client_routes *routes)
{
    while (routes->other_count)
        if (take_next(daemon, routes))
            return true;
    return false;
}
