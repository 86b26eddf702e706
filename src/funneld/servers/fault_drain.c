/* SPDX-License-Identifier: Apache-2.0 */
/* See fault_drain.h. A descriptor of each process tells when it has ended, whichever process reaps
 * it. */
#include "fault_drain.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client_record.h"
#include "clock.h"
#include "fd.h"
#include "journal.h"
#include "process_stat.h"
#include "server_process.h"
#include "text.h"

#define DRAIN_TIMEOUT_NS (10 * NS_PER_SEC)
#define DRAIN_EVERY_NS (60 * NS_PER_SEC)

/* A process that a server had attached when it met a fault. */
struct affected_client {
    struct list link;
    pid_t pid;
    int process_fd;
    uint64_t deadline;            /* it is not waited for any longer then */
    char server[SERVER_NAME_MAX]; /* the name of its server */
};

static void affected_client_free(struct affected_client *client)
{
    list_remove(&client->link);
    fd_close(&client->process_fd);
    free(client);
}

/* Faults that follow each other share one drain, or their drains would have no end. */
static uint64_t find_deadline(struct daemon *daemon, uint64_t now)
{
    if (now >= daemon->next_drain) {
        daemon->drain_deadline = now + DRAIN_TIMEOUT_NS;
        daemon->next_drain = now + DRAIN_EVERY_NS;
    }
    return daemon->drain_deadline;
}

static void await(struct server_process *server, pid_t pid)
{
    int process = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    struct affected_client *client = process >= 0 ? calloc(1, sizeof(*client)) : NULL;

    if (!client) {
        fd_close(&process);
        return;
    }
    client->pid = pid;
    client->process_fd = process;
    client->deadline = find_deadline(server->daemon, clock_ns());
    text_copy(client->server, sizeof(client->server), server->name);
    list_append(&server->daemon->draining, &client->link);
}

void fault_drain_begin(struct server_process *server, const struct server_identity *offender)
{
    list_for_each (struct client_record, record, &server->records, link)
        if (record->attached && !(offender && record->identity.uid == offender->uid))
            await(server, record->identity.pid);
}

static bool is_drained(const struct affected_client *client)
{
    if (process_has_ended(client->process_fd))
        return true;
    if (clock_ns() < client->deadline)
        return false;
    journal_with(LOG_EVENT(client->pid, 0),
                 "Client %d still runs after a fatal GPU error; it is not waited for any longer",
                 (int)client->pid);
    return true;
}

bool fault_drain_in_progress(struct daemon *daemon, const char *name)
{
    bool in_progress = false;

    list_for_each_safe (struct affected_client, client, &daemon->draining, link) {
        if (is_drained(client))
            affected_client_free(client);
        else
            in_progress |= !strcmp(client->server, name);
    }
    return in_progress;
}

void fault_drain_moved(struct daemon *daemon, pid_t pid)
{
    list_for_each_safe (struct affected_client, client, &daemon->draining, link) {
        if (client->pid == pid)
            affected_client_free(client);
    }
}

void fault_drain_close(struct daemon *daemon)
{
    list_for_each_safe (struct affected_client, client, &daemon->draining, link)
        affected_client_free(client);
}
