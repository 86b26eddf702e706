/* SPDX-License-Identifier: Apache-2.0 */
/* See fault_drain.h. A descriptor of each process tells when it has ended, whichever process reaps
 * it. */
#include "fault_drain.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "journal.h"
#include "server_process.h"
#include "text.h"

#define DRAIN_TIMEOUT_NS (10 * NS_PER_SEC)

/* A client of a server; after a fault of that server, a process that is waited for. */
struct attached_client {
    struct list link;
    pid_t pid;
    int process_fd;               /* -1 before the fault */
    uint64_t deadline;            /* it is not waited for any longer then */
    char server[SERVER_NAME_MAX]; /* the name of its server */
};

static void attached_client_free(struct attached_client *client)
{
    list_remove(&client->link);
    fd_close(&client->process_fd);
    free(client);
}

void fault_drain_attached(struct server_process *server, pid_t pid)
{
    struct attached_client *client = pid > 0 ? calloc(1, sizeof(*client)) : NULL;

    if (!client)
        return;
    client->pid = pid;
    client->process_fd = -1;
    text_copy(client->server, sizeof(client->server), server->name);
    list_append(&server->clients, &client->link);
}

void fault_drain_detached(struct server_process *server, pid_t pid)
{
    list_for_each (struct attached_client, client, &server->clients, link) {
        if (client->pid != pid)
            continue;
        attached_client_free(client);
        return;
    }
}

void fault_drain_begin(struct server_process *server)
{
    list_for_each_safe (struct attached_client, client, &server->clients, link) {
        client->process_fd = (int)syscall(SYS_pidfd_open, client->pid, 0);
        if (client->process_fd < 0) {
            attached_client_free(client);
            continue;
        }
        client->deadline = clock_ns() + DRAIN_TIMEOUT_NS;
        list_remove(&client->link);
        list_append(&server->daemon->draining, &client->link);
    }
}

static bool has_ended(const struct attached_client *client)
{
    struct pollfd process = {.fd = client->process_fd, .events = POLLIN};

    return poll(&process, 1, 0) > 0;
}

static bool is_drained(const struct attached_client *client)
{
    if (has_ended(client))
        return true;
    if (clock_ns() < client->deadline)
        return false;
    journal("Client %d still runs after a fatal GPU error; it is not waited for any longer",
            (int)client->pid);
    return true;
}

bool fault_drain_in_progress(struct daemon *daemon, const char *name)
{
    bool in_progress = false;

    list_for_each_safe (struct attached_client, client, &daemon->draining, link) {
        if (is_drained(client))
            attached_client_free(client);
        else
            in_progress |= !strcmp(client->server, name);
    }
    return in_progress;
}

void fault_drain_moved(struct daemon *daemon, pid_t pid)
{
    list_for_each_safe (struct attached_client, client, &daemon->draining, link) {
        if (client->pid == pid)
            attached_client_free(client);
    }
}

static void free_all(struct list *draining)
{
    list_for_each_safe (struct attached_client, client, draining, link)
        attached_client_free(client);
}

/* Those that are left have not been reported as gone. */
void fault_drain_forget_clients(struct server_process *server)
{
    list_for_each (struct attached_client, client, &server->clients, link)
        if (server->daemon->audits)
            journal("Audit: client %d of server %s: how much memory it held is not known, because "
                    "the server has died",
                    (int)client->pid, server->name);
    free_all(&server->clients);
}

void fault_drain_close(struct daemon *daemon)
{
    free_all(&daemon->draining);
}
