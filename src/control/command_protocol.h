/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between front ends (funnel, nvidia-cuda-mps-control) and funneld, on the same socket
 * as programs. It begins with a hello of kind HELLO_COMMAND and a welcome. Each request is then
 * answered by any number of rows or texts and one DONE. There are two requests. A command line in
 * the language of NVIDIA's control daemon is answered in text. A query is answered by everything
 * the user may know, in structures that `funnel` shows as tables or JSON.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server_protocol.h"

#define COMMAND_MAGIC 0x31434e46u /* "FNC1" */
#define COMMAND_TEXT_MAX 4096

/* The release of CUDA MPS whose commands these are, as CUDA writes versions: the first one with
 * static partitions, which tools look for. */
#define MPS_BINARY_VERSION 13010

enum command_message {
    COMMAND_LINE = 1, /* struct command_text */
    COMMAND_QUERY,    /* the header alone */
    COMMAND_METRICS,  /* the same; answered by struct command_text, in pieces */

    COMMAND_OUTPUT = 64, /* struct command_text */
    COMMAND_DAEMON,      /* struct command_daemon: once, first */
    COMMAND_SERVER,      /* struct command_server, followed by its clients */
    COMMAND_CLIENT,      /* struct command_client */
    COMMAND_LIMIT,       /* struct command_limit */
    COMMAND_TRACE, /* struct command_trace + one fd: what its server writes (trace_format.h) */
    COMMAND_DONE,  /* struct command_done */
    COMMAND_QUOTA, /* struct command_quota: one for each */
};

struct command_header {
    uint32_t magic;
    uint32_t kind; /* enum command_message */
};

/* As long as its text: a message holds header and text, without NUL. */
struct command_text {
    struct command_header header;
    char text[COMMAND_TEXT_MAX];
};

struct command_daemon {
    struct command_header header;
    int32_t pid;
    uint32_t uid;
    int64_t since;
    char device[8]; /* auto, cuda, soft: what its servers are started with */
    char version[24];
    char log_directory[512]; /* cut when longer */
    uint32_t sm_centipercent;
    uint32_t priority;
    uint32_t waiting; /* programs that wait for a server */
    uint32_t quitting;
    uint32_t multiuser;           /* one server for all users */
    uint32_t static_partitioning; /* every program runs in a static partition */
};

struct command_server {
    struct command_header header;
    int32_t pid; /* 0: a named server that does not run */
    uint32_t uid;
    int64_t since;
    uint32_t state;      /* enum server_state */
    uint32_t responding; /* 0: it did not answer in time; clients and free memory are unknown */
    uint32_t stopping;
    uint32_t driver; /* enum server_driver, 0 = not known yet */
    uint32_t driver_version;
    uint32_t device_count;
    uint32_t client_count;
    uint32_t max_clients;
    uint32_t sm_centipercent;
    uint32_t priority;
    char name[SERVER_NAME_MAX]; /* uid_N for the server of a user's programs; NAME:LANE */
    char lane[64];              /* main, batch, quarantine and so on: lane_name.h */
    char directory[112];        /* where its programs find it */
    uint64_t memory_free[SERVER_MAX_DEVICES];
    struct server_device devices[SERVER_MAX_DEVICES];
    uint32_t silent_ms;      /* since when no heartbeat has come; 0 = it comes in time */
    uint32_t waited_ms;      /* since when a client is in a call while another one is */
    int32_t standby_pid;     /* of the process that stands by; 0 = none does */
    uint32_t standby_ready;  /* 0: it is starting */
    uint32_t standby_mib;    /* of each device's memory that it takes, about */
    int32_t seen_pid;        /* as that of a client */
    uint32_t slices_refused; /* as in struct server_status_end */
    uint32_t reserved;
    char stall[sizeof(((struct server_heartbeat *)NULL)->text)]; /* which, as the server said it */
    struct server_code_cache code_cache;
    uint64_t swap_locked, swap_used, swap_kept; /* as in struct server_status_end */
    struct server_sensors sensors[SERVER_MAX_DEVICES];
};

struct command_client {
    struct command_header header;
    int32_t server_pid;
    int32_t
        seen_pid; /* the client's in the PID namespace of the front end; 0 = not visible there */
    struct server_status_row row;
};

enum command_scope {
    COMMAND_SCOPE_DAEMON,
    COMMAND_SCOPE_SERVER,
    COMMAND_SCOPE_NAMESPACE,
    COMMAND_SCOPE_USER,
    COMMAND_SCOPE_GROUP,
};

/* A limit that has been set, and for whom. One message for each device where they differ. */
struct command_limit {
    struct command_header header;
    uint32_t scope; /* enum command_scope */
    uint32_t uid;
    char name[SERVER_NAME_MAX]; /* of the server or group */
    char space[SERVER_NAME_MAX];
    uint32_t sm_centipercent, sms; /* 0 = not this */
    uint32_t sets_priority, priority;
    uint32_t sets_memory, class; /* enum client_class; CLASS_UNSET = not this */
    uint64_t memory;             /* 0 = no limit */
    char device[64];             /* "" = each */
    uint32_t sets_oversubscribe, oversubscribe;
    uint64_t joint;        /* bytes that all have together; 0 = no limit */
    char joint_device[64]; /* "" = each */
    uint32_t sets_joint;
    uint32_t sets_evict_after, evict_after; /* seconds; 0 = never */
    uint32_t reserved;
};

/* A quota that is in force. */
struct command_quota {
    struct command_header header;
    char name[32]; /* "host-memory" */
    char owner[8]; /* client, user or daemon */
    uint32_t unit; /* enum quota_unit */
    uint32_t reserved;
    uint64_t value, initial; /* now; and before any change */
};

struct command_trace {
    struct command_header header;
    int32_t server_pid;
    char name[SERVER_NAME_MAX];
    uint32_t reserved;
};

enum command_status {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1,
    COMMAND_REJECTED = 2, /* not understood or not allowed: nothing has changed */
};

struct command_done {
    struct command_header header;
    int32_t status; /* enum command_status */
    int32_t reason; /* of suspend and its like that have failed: enum suspend_result; 0 = none */
};

/* Large enough for any message. */
union command_any {
    struct command_header header;
    struct command_text text;
    struct command_daemon daemon;
    struct command_server server;
    struct command_client client;
    struct command_limit limit;
    struct command_quota quota;
    struct command_trace trace;
    struct command_done done;
};
