/* SPDX-License-Identifier: Apache-2.0 */
/* See aftermath.h. A descriptor of each process tells when it has ended, whoever reaps it. */
#include "aftermath.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "funneld_server.h"
#include "journal.h"
#include "text.h"

#define PATIENCE_NS (10 * NS_PER_SEC)

/* A client of a server, and later somebody who is waited for. */
struct survivor {
    struct list link;
    pid_t pid;
    int process_fd;               /* -1 before the fault */
    uint64_t deadline;            /* until then */
    char server[SERVER_NAME_MAX]; /* whose client it was */
};

static void survivor_free(struct survivor *survivor)
{
    list_remove(&survivor->link);
    fd_close(&survivor->process_fd);
    free(survivor);
}

void aftermath_attached(struct server *server, pid_t pid)
{
    struct survivor *survivor = pid > 0 ? calloc(1, sizeof(*survivor)) : NULL;

    if (!survivor)
        return;
    survivor->pid = pid;
    survivor->process_fd = -1;
    text_copy(survivor->server, sizeof(survivor->server), server->name);
    list_append(&server->clients, &survivor->link);
}

void aftermath_detached(struct server *server, pid_t pid)
{
    list_for_each(struct survivor, survivor, &server->clients, link)
    {
        if (survivor->pid != pid)
            continue;
        survivor_free(survivor);
        return;
    }
}

void aftermath_begin(struct server *server)
{
    list_for_each_safe(struct survivor, survivor, &server->clients, link)
    {
        survivor->process_fd = (int)syscall(SYS_pidfd_open, survivor->pid, 0);
        if (survivor->process_fd < 0) {
            survivor_free(survivor);
            continue;
        }
        survivor->deadline = clock_ns() + PATIENCE_NS;
        list_remove(&survivor->link);
        list_append(&server->daemon->survivors, &survivor->link);
    }
}

static bool has_ended(const struct survivor *survivor)
{
    struct pollfd process = {.fd = survivor->process_fd, .events = POLLIN};

    return poll(&process, 1, 0) > 0;
}

static bool is_over(const struct survivor *survivor)
{
    if (has_ended(survivor))
        return true;
    if (clock_ns() < survivor->deadline)
        return false;
    journal("Client %d lives on after a fatal GPU error; it is not waited for any longer",
            (int)survivor->pid);
    return true;
}

bool aftermath_goes_on(struct daemon *daemon, const char *name)
{
    bool goes_on = false;

    list_for_each_safe(struct survivor, survivor, &daemon->survivors, link)
    {
        if (is_over(survivor))
            survivor_free(survivor);
        else
            goes_on |= !strcmp(survivor->server, name);
    }
    return goes_on;
}

void aftermath_moved(struct daemon *daemon, pid_t pid)
{
    list_for_each_safe(struct survivor, survivor, &daemon->survivors, link)
    {
        if (survivor->pid == pid)
            survivor_free(survivor);
    }
}

static void free_all(struct list *survivors)
{
    list_for_each_safe(struct survivor, survivor, survivors, link) survivor_free(survivor);
}

void aftermath_forget_clients(struct server *server)
{
    free_all(&server->clients);
}

void aftermath_close(struct daemon *daemon)
{
    free_all(&daemon->survivors);
}
