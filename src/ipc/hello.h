/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first words on the daemon's socket. Whoever connects to <pipe directory>/funnel says hello;
 * whoever is turned away, by the daemon or by a server, hears a welcome with a status that is not
 * 0. This file is below wire and control because both ends of both need it: the daemon passes the
 * hello on to a server, and may refuse a client without knowing anything of what follows an attach.
 */
#pragma once

#include <stdint.h>

#define HELLO_MAGIC 0x314c4e46u /* "FNL1" */
#define HELLO_VERSION 2

/* Name of the socket in the pipe directory. Never "control": that is NVIDIA's. */
#define HELLO_SOCKET_NAME "funnel"

enum hello_kind {
    HELLO_CLIENT = 1,  /* a CUDA program: becomes the client of a server */
    HELLO_COMMAND = 2, /* a front end: what follows is in control/command_protocol.h */
};

#define HELLO_MAX_DEVICES 32
#define HELLO_NAMED_LIMITS 8
#define HELLO_GROUP_MAX 32
#define HELLO_PARTITION_MAX 96
#define HELLO_PRIORITY_UNSET UINT32_MAX

/* A memory limit for a device called by its UUID or the beginning of it; who asks for it does not
 * know the devices yet. */
struct hello_named_limit {
    char device[48]; /* ended by NUL, empty = not used */
    uint64_t bytes;
};

/* What a process asks for itself; it may only tighten what the daemon grants. */
struct hello {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint64_t api_hash;        /* hash of the wire ledger; only equal ones understand each other */
    uint32_t sm_centipercent; /* 3350 = 33.5 % of the SMs; 0 = not asked for */
    uint32_t priority;        /* 0 normal, 1 below normal, HELLO_PRIORITY_UNSET */
    uint64_t memory_limit[HELLO_MAX_DEVICES]; /* bytes a device, 0 = not asked for */
    char program[64];                         /* short name, for people; not trusted */
    char release[32];                         /* release of the client library */
    struct hello_named_limit named_limits[HELLO_NAMED_LIMITS];
    char group[HELLO_GROUP_MAX]; /* FUNNEL_GROUP: a name that operators know it by, or "" */
    char sm_partition[HELLO_PARTITION_MAX]; /* CUDA_MPS_SM_PARTITION, or "" */
    uint64_t
        window_base; /* 0, or whoever lost its server has its memory here: this window or none */
};

#define WELCOME_MAGIC 0x31574e46u /* "FNW1" */

/* The answer. Refused: this alone. Accepted: status 0, and what attach.h defines follows it. */
struct welcome {
    uint32_t magic;
    int32_t status; /* a CUresult: 0, or why not */
    char text[472]; /* one sentence: the cause and the remedy; NUL-terminated */
};
