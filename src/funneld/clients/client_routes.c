/* SPDX-License-Identifier: Apache-2.0 */
/* See client_routes.h. */
#include "client_routes.h"

#include <limits.h>

#include "control_group.h"
#include "group_memory.h"
#include "journal.h"
#include "quarantine.h"
#include "service.h"

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

void client_routes_find(const struct daemon *daemon, const struct server_identity *identity,
                        const struct client_program *program, struct mps_namespace **space,
                        struct client_routes *ret_routes)
{
    struct client_routes routes = {.in_quarantine = false};
    uid_t uid = daemon->multiuser ? daemon->server_uid : identity->uid;
    gid_t gid = daemon->multiuser ? (gid_t)daemon->server_uid : identity->gid;

    if (*space) {
        routes.first = service_route((*space)->service);
    } else {
        routes.first = routes.second = service_route_of_user(daemon, uid, gid, space);
        routes.in_quarantine = quarantine_holds(daemon, identity, program);
        quarantine_name_server(identity->uid,
                               routes.in_quarantine ? routes.first.name : routes.second.name);
    }
    *ret_routes = routes;
}

bool client_routes_change(const struct daemon *daemon, struct client_routes *routes)
{
    bool is_there = server_process_find(daemon, routes->second.name) != NULL;

    if (!*routes->second.name || (!is_there && !routes->in_quarantine))
        return false;
    journal("The server %s cannot be started, so a program of it shares the server %s",
            routes->first.name, routes->second.name);
    routes->first = routes->second;
    *routes->second.name = '\0';
    return true;
}
