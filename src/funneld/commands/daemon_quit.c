/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_quit.h. */
#include "daemon_quit.h"

#include "console.h"
#include "journal.h"
#include "notify.h"
#include "server_process.h"
#include "service.h"
#include "settings.h"

static void leave_loop(struct daemon *daemon)
{
    notify("STOPPING=1");
    journal("Exit");
    settings_forget(daemon);
    event_base_loopbreak(daemon->base);
}

/* The instance is closed before front ends are told, so that they can start the next daemon. */
void daemon_quit_finish(struct daemon *daemon)
{
    services_close(daemon);
    instance_close(&daemon->instance);
    list_for_each_safe (struct console, console, &daemon->consoles, link)
        if (console->awaits_quit)
            console_done(console, daemon->forced);
}

void daemon_quit_server_reaped(struct daemon *daemon)
{
    if (daemon->quitting && list_empty(&daemon->servers))
        leave_loop(daemon);
}

void daemon_quit_on_timeout(evutil_socket_t fd, short what, void *context)
{
    struct daemon *daemon = context;

    daemon->forced |= !list_empty(&daemon->servers);
    list_for_each (struct server_process, server, &daemon->servers, link)
        server_process_stop(server, true);
}

/* Whether the time that is set is longer than `seconds`, or none is set. */
static bool shortens_timeout(struct daemon *daemon, int seconds)
{
    struct timeval due, now, asked = {.tv_sec = seconds}, end;

    if (!event_pending(daemon->quit_timeout, EV_TIMEOUT, &due))
        return true;
    evutil_gettimeofday(&now, NULL);
    evutil_timeradd(&now, &asked, &end);
    return evutil_timercmp(&end, &due, <);
}

static void set_quit_timeout(struct daemon *daemon, int seconds)
{
    struct timeval timeout = {.tv_sec = seconds};

    if (seconds >= 0 && shortens_timeout(daemon, seconds))
        evtimer_add(daemon->quit_timeout, &timeout);
}

void daemon_quit(struct daemon *daemon, int timeout_s, struct console *quitter)
{
    if (quitter)
        quitter->awaits_quit = true;
    set_quit_timeout(daemon, timeout_s);
    if (daemon->quitting)
        return;
    daemon->quitting = true;
    list_for_each (struct server_process, server, &daemon->servers, link)
        server_process_stop(server, false);
    daemon_quit_server_reaped(daemon);
}
