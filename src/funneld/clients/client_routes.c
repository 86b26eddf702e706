/* SPDX-License-Identifier: Apache-2.0 */
/* See client_routes.h. */
#include "client_routes.h"

#include <limits.h>
#include <string.h>

#include "client_class.h"
#include "control_group.h"
#include "fate_domain.h"
#include "group_memory.h"
#include "journal.h"
#include "lane.h"
#include "lane_name.h"
#include "service.h"
#include "spare_lane.h"
#include "text.h"
#include "user_owner.h"

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

/* The lane of a user's own domain counts among the servers of that user. */
static void choose_lane(const struct daemon *daemon, const struct server_identity *identity,
                        const struct client_program *program, const struct fate_wish *wish,
                        bool is_new, bool is_spare, struct client_routes *routes)
{
    char domain[LANE_DOMAIN_MAX];

    if (fate_domain_find(daemon, identity, program, wish, domain))
        routes->first.owner = identity->owner;
    else if (!*domain && (is_spare || (is_new && wish->class != CLASS_BATCH &&
                                       spare_lane_is_better(daemon, wish->service, program))))
        text_copy(domain, sizeof(domain), LANE_DOMAIN_SPARE);
    routes->is_of_program = fate_domain_needs_program(wish);
    lane_name(wish->service, wish->class == CLASS_BATCH, domain, routes->first.name);
}

void client_routes_find(const struct daemon *daemon, const struct server_identity *identity,
                        const struct client_program *program, const struct hello *hello,
                        const struct lane_choice *choice, struct mps_namespace **space,
                        struct client_routes *ret_routes)
{
    struct client_routes routes = {.changes = 0};
    uid_t uid = daemon->multiuser ? daemon->server_uid : identity->uid;
    gid_t gid = daemon->multiuser ? (gid_t)daemon->server_uid : identity->gid;
    char service[SERVER_NAME_MAX];

    routes.first =
        *space ? service_route((*space)->service) : service_route_of_user(daemon, uid, gid, space);
    routes.class = choice->class ? choice->class
                                 : limit_rules_class(&daemon->rules, identity,
                                                     *space ? (*space)->change.class : CLASS_UNSET,
                                                     hello->class);
    text_copy(service, sizeof(service), routes.first.name);
    const struct fate_wish wish = {service,
                                   lane_wish_is_batch(choice->wish) ? CLASS_BATCH : routes.class,
                                   service_isolation(daemon, *space), hello->isolation};
    bool is_new = hello->kind == HELLO_CLIENT && !hello->window_base && !hello->is_of_job;

    choose_lane(daemon, identity, program, &wish, is_new, choice->wish == LANE_SPARE, &routes);
    *ret_routes = routes;
}

/* The main lane, then any other lane that is there. NULL = there is nothing left to try. */
static const char *next_route(const struct daemon *daemon, struct client_routes *routes,
                              const char *service)
{
    const struct server_process *other;

    if (routes->changes++ == 0 && !lane_name_is_main(routes->first.name))
        return service;
    other = routes->changes <= 2 ? lane_find_other(daemon, service, routes->first.name) : NULL;
    routes->changes = 2;
    return other ? other->name : NULL;
}

bool client_routes_change(const struct daemon *daemon, struct client_routes *routes)
{
    char service[SERVER_NAME_MAX];
    const char *next;

    lane_name_service(routes->first.name, service);
    next = next_route(daemon, routes, service);
    if (!next)
        return false;
    journal("The server %s cannot be started, so a program of it shares the server %s",
            routes->first.name, next);
    text_copy(routes->first.name, sizeof(routes->first.name), next);
    routes->first.owner = user_owner(routes->first.uid);
    return true;
}
