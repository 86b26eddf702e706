/* SPDX-License-Identifier: Apache-2.0 */
/* See replacement.h. */
#include "replacement.h"

#include <string.h>

#include "journal.h"
#include "server_process.h"
#include "server_start.h"
#include "standby.h"

bool replacement_is_wanted(const struct server_process *server)
{
    /* The client that has caused a fault does not move. */
    unsigned staying = server->state == SERVER_FAULTED ? 1 : 0;

    return server->handed_over > staying;
}

static bool may_be_replaced(const struct server_process *server)
{
    return server->role == SERVER_SERVING && !server->dismissed && !server->daemon->quitting;
}

/* One that has never served would not start the next time either. */
static bool start_new(struct server_process *server)
{
    struct server_process *another;
    int error;

    if (!server_process_has_started(server))
        return false;
    server->role = SERVER_REPLACED;
    error = server_process_start_another(server, SERVER_SERVING, &another);
    if (error) {
        server->role = SERVER_SERVING;
        journal("Nothing takes the place of server %d yet: %s", (int)server->pid,
                server_process_start_error(error));
        return false;
    }
    another->limits = server->limits;
    server_file_save(server);
    server_file_save(another);
    journal("Server %d will take the place of server %d, which ends", (int)another->pid,
            (int)server->pid);
    return true;
}

bool replacement_is_coming(const struct server_process *server)
{
    const struct server_process *next = server_process_find(server->daemon, server->name);

    return next && next->state == SERVER_INITIALIZING;
}

/* A server that has faulted keeps its context while the driver of the next one starts, since either
 * would wait for the other's driver. */
void replacement_end_old(const struct server_process *server)
{
    struct server_depart message;

    server_message_init(&message, SERVER_DEPART, 0);
    list_for_each (struct server_process, old, &server->daemon->servers, link) {
        if (old->state != SERVER_FAULTED || strcmp(old->name, server->name))
            continue;
        connection_send(&old->connection, &message, sizeof(message), -1);
        server_process_set_stop_deadline(old);
    }
}

bool replacement_find(struct server_process *server, bool wanted)
{
    if (!may_be_replaced(server))
        return false;
    return standby_take_over(server) || (wanted && start_new(server));
}
