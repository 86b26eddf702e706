/* SPDX-License-Identifier: Apache-2.0 */
/* See accept_shortage.h. */
#include "accept_shortage.h"

#include <errno.h>
#include <string.h>

#include "accept_reserve.h"
#include "clock.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "funnel_errors.h"
#include "hello.h"
#include "journal.h"
#include "service.h"
#include "sock.h"
#include "text.h"
#include "user_owner.h"

#define PATIENCE_NS (2 * NS_PER_SEC)
#define PAUSE_US 100000

void accept_shortage_init(struct daemon *daemon)
{
    daemon->kept_fd = accept_reserve_open();
}

void accept_shortage_fini(struct daemon *daemon)
{
    fd_close(&daemon->kept_fd);
}

static void begin(struct daemon *daemon, int error)
{
    daemon->short_since = clock_ns();
    if (error == -EMFILE)
        journal("Cannot accept connections: %s. The limit of open files is %llu; %s",
                strerror(-error), (unsigned long long)descriptor_limit(), DESCRIPTORS_REMEDY);
    else
        journal("Cannot accept connections: %s", strerror(-error));
}

static void pause_accepting(struct daemon *daemon)
{
    struct timeval pause = {.tv_usec = PAUSE_US};

    services_listen(daemon, false);
    evtimer_add(daemon->accept_pause, &pause);
}

/* Neither programs nor front ends have said anything yet, and both understand a welcome. */
static void refuse(int fd)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC,
                              .status = FUNNEL_ERROR_MPS_MAX_CONNECTIONS_REACHED};
    pid_t pid = 0;
    uid_t uid = 0;
    gid_t gid = 0;

    text_format(welcome.text, sizeof(welcome.text),
                "The daemon has no descriptor left: its limit of open files is %llu; %s",
                (unsigned long long)descriptor_limit(), DESCRIPTORS_REMEDY);
    sock_peer(fd, &pid, &uid, &gid);
    uid_t before = journal_account(user_owner(uid));
    journal_with(LOG_EVENT(pid, welcome.status), "Client %d of user %u refused with status %d: %s",
                 (int)pid, (unsigned)uid, welcome.status, welcome.text);
    journal_account(before);
    sock_send(fd, &welcome, sizeof(welcome), NULL, 0);
}

static bool refuse_next(struct daemon *daemon, int listen_fd)
{
    _cleanup_fd_ int fd = -1;

    if (accept_by_reserve(&daemon->kept_fd, listen_fd, &fd))
        return false;
    refuse(fd);
    fd_close(&fd);
    accept_shortage_init(daemon);
    return true;
}

bool accept_shortage_refuse(struct daemon *daemon, int listen_fd, int error)
{
    if (!daemon->short_since)
        begin(daemon, error);
    if (clock_ns() - daemon->short_since >= PATIENCE_NS && refuse_next(daemon, listen_fd))
        return true;
    pause_accepting(daemon);
    return false;
}

void accept_shortage_end(struct daemon *daemon)
{
    daemon->short_since = 0;
}
