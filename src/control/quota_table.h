/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of quotas, beside the limits of device memory and multiprocessors. It bounds how
 * much of the shared things a client, a user and all users of a daemon may hold. Daemon, servers
 * and front ends know it by this file; docs/operating.md shows it to operators.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum quota {
    /* Of one client; its server counts them. */
    QUOTA_HOST_MEMORY,  /* page-locked memory */
    QUOTA_RANGES,       /* granules, mappings, imports and variables: each may be a descriptor */
    QUOTA_MODULES,      /* loaded modules */
    QUOTA_STREAMS,      /* streams */
    QUOTA_EVENTS,       /* events */
    QUOTA_ARRAYS,       /* arrays */
    QUOTA_GRAPH_MEMORY, /* descriptions of launchable graphs, in the server's own memory */
    QUOTA_WAITS,        /* cuStreamWaitValue that no value has ended yet */
    QUOTA_HELD_COUNT,   /* those above are held; those below are rates and times */
    QUOTA_KEPT_MEMORY = QUOTA_HELD_COUNT, /* device memory whose descriptor it has had */
    QUOTA_WAIT_SECONDS,                   /* for which a wait keeps calls of others away */
    QUOTA_LOG,                            /* lines about one client in server.log */
    QUOTA_CLIENT_COUNT,

    /* Of one user; the daemon counts them, and not for its own user. */
    QUOTA_ATTACHES = QUOTA_CLIENT_COUNT, /* programs that connect */
    QUOTA_CONNECTIONS,                   /* connections that no server has got yet */
    QUOTA_SLOTS,                         /* clients in a server of several users */
    QUOTA_CONTROL_LOG,                   /* lines caused by one user in control.log */
    QUOTA_USER_SERVERS,                  /* server processes for one user's programs */

    /* Of all users of a daemon. */
    QUOTA_SERVERS,      /* server processes */
    QUOTA_SWAP_MEMORY,  /* host memory of a server for suspended programs */
    QUOTA_SWAP_AHEAD,   /* of it, what is page-locked before it is needed */
    QUOTA_STAY_SECONDS, /* for which a program's memory stays on a device at most, while others wait
                         */
    QUOTA_ROOM_SECONDS, /* for which an allocation waits at most for others to make room */
    QUOTA_LOG_FILE,     /* a log; beyond it the log is put aside, and one old log is kept */
    QUOTA_COUNT,
};

enum quota_unit {
    QUOTA_NUMBER,
    QUOTA_BYTES,
    QUOTA_BYTES_A_MINUTE,
    QUOTA_A_SECOND,
    QUOTA_SECONDS,
    QUOTA_PERCENT_OF_LIMIT, /* of the client's memory limit */
};

struct quota_row {
    const char *name; /* "host-memory" */
    enum quota_unit unit;
    uint64_t least, most; /* that an operator may set */
    uint64_t initial;     /* 0 = depends on the machine: quotas_init() */
    const char *about;    /* for people */
};

extern const struct quota_row quota_rows[QUOTA_COUNT];

struct quotas {
    uint64_t value[QUOTA_COUNT];
};

/* The defaults of the table. Host memory gets half of the machine's memory, and ranges get an
 * eighth of the descriptors that this process may have. */
void quotas_init(struct quotas *quotas);

#define QUOTA_REASON_MAX 256

/* Takes over changes such as "host-memory=8G,waits=64"; "waits=default" takes one back. 0; or
 * -EINVAL, with the table as it was and a message in `ret_reason`. */
int quotas_change(struct quotas *quotas, const char *changes, char ret_reason[QUOTA_REASON_MAX]);

/* "client", "user" or "daemon": whose the quota is. */
const char *quota_owner(enum quota which);

/* "bytes", "number", "a second" ... */
const char *quota_unit_name(enum quota_unit unit);

/* "8G", "64K", "1024": as an operator would write it. */
#define QUOTA_TEXT_MAX 24
void quota_value_text(enum quota_unit unit, uint64_t value, char ret_text[QUOTA_TEXT_MAX]);
