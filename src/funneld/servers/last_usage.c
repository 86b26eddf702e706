/* SPDX-License-Identifier: Apache-2.0 */
/* See last_usage.h. */
#include "last_usage.h"

#include <stdlib.h>

#include "usage_journal.h"

#define STATUS_SERVER_GONE 806

/* More than a server takes clients: what an insane one sends costs no more than this. */
#define CLIENTS_MAX 1024u

struct last_usage {
    struct list link;
    struct server_client_gone usage;
};

static struct last_usage *find(struct server_process *server, uint32_t id)
{
    list_for_each (struct last_usage, last, &server->usages, link) {
        if (last->usage.id == id)
            return last;
    }
    return NULL;
}

static bool is_full(struct server_process *server)
{
    unsigned count = 0;

    list_for_each (struct last_usage, last, &server->usages, link)
        count += last->usage.id != 0;
    return count >= CLIENTS_MAX;
}

static struct last_usage *add(struct server_process *server)
{
    struct last_usage *last = is_full(server) ? NULL : calloc(1, sizeof(*last));

    if (last)
        list_append(&server->usages, &last->link);
    return last;
}

static void drop(struct last_usage *last)
{
    list_remove(&last->link);
    free(last);
}

void last_usage_note(struct server_process *server, const struct server_client_gone *usage)
{
    struct last_usage *last = find(server, usage->id);

    if (!last)
        last = add(server);
    if (last)
        last->usage = *usage;
}

void last_usage_forget(struct server_process *server, uint32_t id)
{
    struct last_usage *last = find(server, id);

    if (last)
        drop(last);
}

void last_usage_close(struct server_process *server)
{
    list_for_each_safe (struct last_usage, last, &server->usages, link) {
        last->usage.status = STATUS_SERVER_GONE;
        usage_journal_add(server->daemon, server->name, &server->ready, &last->usage);
        drop(last);
    }
}
