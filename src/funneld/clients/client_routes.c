/* SPDX-License-Identifier: Apache-2.0 */
/* See client_routes.h. */
#include "client_routes.h"

#include "journal.h"
#include "quarantine.h"
#include "service.h"

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
