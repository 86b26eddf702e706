/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the subcommands of `funnel`: a table of them, options, and finding the daemon. */
#pragma once

#include <stdbool.h>

#include "paths.h"

struct subcommand {
    const char *name;
    const char *summary;
    const char *help; /* usage, options, examples */
    int (*run)(int argc, char **argv);
};

/* Tables that end with a name of NULL. */
extern const struct subcommand daemon_subcommands[]; /* start, stop, log */
extern const struct subcommand run_subcommands[];    /* run */
extern const struct subcommand
    limit_subcommands[]; /* limit, provision, terminate, suspend, evict, resume, migrate */
extern const struct subcommand checkpoint_subcommands[]; /* checkpoint, restore */
extern const struct subcommand pack_subcommands[];       /* pack */
extern const struct subcommand manage_subcommands[];     /* server, namespace, partition, memory */
extern const struct subcommand top_subcommands[];        /* top */
extern const struct subcommand metrics_subcommands[];    /* metrics */
extern const struct subcommand trace_subcommands[];      /* trace */
extern const struct subcommand usage_subcommands[];      /* usage */
extern const struct subcommand why_subcommands[];        /* why */
extern const struct subcommand cache_subcommands[];      /* cache */
extern const struct subcommand cdi_subcommands[];        /* cdi */
extern const struct subcommand divert_subcommands[];     /* divert */
extern const struct subcommand enable_subcommands[];     /* enable, disable */
extern const struct subcommand view_subcommands[];       /* status, ps, servers, clients, devices */

/* The one that runs now, and its words as main() got them; usage errors name them. */
extern const struct subcommand *cli_current;
extern char **cli_words;

/* "funnel start: message" on standard error; returns 1. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for an error in the command line, with a pointer to the help; returns 2. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for the word that getopt_long() has just refused. */
int cli_wrong_option(void);

bool cli_is_device(const char *name);

/* The device where no option names one: that of FUNNEL_DEVICE, else "auto". NULL after an error
 * message, for a value that is none. */
const char *cli_default_device(void);

/* The directories of this user: 0, or 1 after an error message. */
int cli_paths(struct paths *ret_paths);

/* Those of the daemon that this user's programs reach: the user's own, or root's. */
int cli_find_daemon(struct paths *ret_paths);

/* The daemon's log directory, which only the daemon itself knows in the directory of a named
 * server.
 */
void cli_find_logs(struct paths *paths);

/* The log of the errors of a program under `funnel run`. It is client.log in the daemon's log
 * directory where the user may write to it, else that of user_log.h. Creates it if possible. 0, or
 * 1 after an error message. */
int cli_client_log(const struct paths *paths, char *ret_path, size_t capacity);

/* Those of the two that are there; programs without `funnel run` use the second. How many. */
unsigned cli_client_logs(const struct paths *paths, char ret_paths[2][PATH_MAX]);

/* The options that a daemon is started with. */
struct daemon_options {
    const char *device;        /* auto, cuda, soft */
    bool static_partitioning;  /* every program runs in a static partition */
    const char *config;        /* a configuration file of MPS 3, or NULL */
    bool multiuser;            /* one server for all users */
    const char *server_user;   /* its user; NULL = the daemon's */
    bool spare;                /* a server stands by for each main lane */
    const char *isolation;     /* isolation.h; NULL = none */
    const char *metrics;       /* where they are served; NULL = nowhere */
    const char *stall_timeout; /* seconds, or NULL for the daemon's own */
    bool is_for_program;       /* limits and devices in the environment are a program's, not
                                  the daemon's */
};

/* Runs `funneld -d` with these and waits until it serves: its exit status. With `quiet` its
 * messages are discarded. */
int cli_start_daemon(const struct daemon_options *options, bool quiet);
