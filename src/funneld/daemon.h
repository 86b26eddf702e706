/* SPDX-License-Identifier: Apache-2.0 */
/*
 * funneld: one loop that accepts connections, starts and watches servers, and introduces programs
 * to them. It never loads a GPU driver and keeps nothing about clients, so it has nothing to lose.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "client_limits.h"
#include "instance.h"
#include "list.h"
#include "paths.h"
#include "rules.h"
#include "statics.h"

struct console;

struct daemon {
    struct event_base *base;
    struct paths paths;
    struct instance instance;
    struct limits defaults;
    struct rules rules;
    struct statics statics;
    const char *device; /* auto, cuda, soft */
    bool foreground;
    bool audits;          /* says of each client that leaves how much memory it held ... */
    bool audits_by_order; /* ... or not, because somebody said so */
    bool multiuser;       /* one server, under the daemon's user, for everybody */
    uid_t uid;
    time_t since;

    struct event *acceptor;
    struct event *accept_pause;
    struct event *signals[4];
    struct list services;  /* struct service: named ones, running or not */
    struct list servers;   /* struct server */
    struct list newcomers; /* struct newcomer: have not said hello, or wait for a server */
    struct list consoles;  /* struct console: front ends */
    struct list survivors; /* of faults; aftermath.h */

    bool quitting;
    bool forced;             /* some server had to be ended by force */
    struct event *patience;  /* until servers are ended by force */
    struct console *quitter; /* the front end that waits for the end, or NULL */
};

/* Before anything else. */
void daemon_init(struct daemon *daemon);

/* Runs until quit, with an open instance and journal. Returns the exit status. `ready_fd` is told
 * when the daemon serves (-1 = nobody waits). */
int daemon_run(struct daemon *daemon, int ready_fd);

/* Takes nobody new and ends once all servers have ended: by themselves when their last client
 * leaves, and by force after `patience_s` (-1 = never). Calling it again can only shorten that. */
void daemon_quit(struct daemon *daemon, int patience_s, struct console *quitter);

/* Starts or stops accepting connections: 0 or -ENOMEM. */
int daemon_listen(struct daemon *daemon, bool on);

/* To be called when a server has gone. */
void daemon_server_gone(struct daemon *daemon);
