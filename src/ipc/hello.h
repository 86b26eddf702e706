/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first messages on the daemon's socket. A program that connects to <pipe directory>/funnel
 * sends a hello. When the daemon or a server refuses it, it receives a welcome with a status that
 * is not 0. This file is below wire and control because both ends of both need it. The daemon
 * passes the hello on to a server, and may refuse a client without knowing the messages behind an
 * attach.
 */
#pragma once

#include <stdint.h>

#define HELLO_MAGIC 0x314c4e46u /* "FNL1" */
#define HELLO_VERSION 6

/* Name of the socket in the pipe directory. Never "control": that is NVIDIA's. */
#define HELLO_SOCKET_NAME "funnel"

enum hello_kind {
    HELLO_CLIENT = 1,  /* a CUDA program: becomes the client of a server */
    HELLO_COMMAND = 2, /* a front end: its messages are in control/command_protocol.h */
    HELLO_AHEAD = 3,   /* the same of a process that is about to become a CUDA program, whose server
                          starts meanwhile if none runs */
};

#define HELLO_MAX_DEVICES 32
#define HELLO_NAMED_LIMITS 8
#define HELLO_GROUP_MAX 32
#define HELLO_PARTITION_MAX 96
#define HELLO_COMMAND_MAX 256
#define HELLO_TOKEN_SIZE 16
#define HELLO_PRIORITY_UNSET UINT32_MAX

/* A memory limit for a device that is named by its UUID, as the program does not know the numbers
 * of the devices yet. */
struct hello_named_limit {
    char device[48]; /* UUID or the beginning of it, ended by NUL; empty = not used */
    uint64_t bytes;  /* at most this much memory */
};

/* The totals of device memory that a client with a memory limit sees. */
enum hello_totals {
    HELLO_TOTALS_UNSET = 0,  /* what the daemon says */
    HELLO_TOTALS_LIMIT = 1,  /* the limit */
    HELLO_TOTALS_DEVICE = 2, /* the device's memory */
};

/* The limits that a process asks for itself. They may only tighten the daemon's. */
struct hello {
    uint32_t magic;    /* HELLO_MAGIC */
    uint16_t version;  /* HELLO_VERSION */
    uint16_t kind;     /* enum hello_kind */
    uint64_t api_hash; /* WIRE_API_HASH of the generated code: both ends must have the same */
    uint32_t sm_centipercent; /* 3350 = 33.5 % of the multiprocessors; 0 = not asked for */
    uint32_t priority;        /* 0 normal, 1 below normal, HELLO_PRIORITY_UNSET */
    uint64_t memory_limit[HELLO_MAX_DEVICES]; /* bytes a device, 0 = not asked for */
    char program[64];                         /* short name, for people; not trusted */
    char release[32];                         /* release of the client library, for the log */
    struct hello_named_limit named_limits[HELLO_NAMED_LIMITS]; /* for devices by UUID */
    char group[HELLO_GROUP_MAX]; /* FUNNEL_GROUP: a name that operators know it by, or "" */
    char sm_partition[HELLO_PARTITION_MAX]; /* CUDA_MPS_SM_PARTITION, or "" */
    uint32_t totals;                        /* enum hello_totals; any other value counts as unset */
    uint32_t class;                         /* enum client_class; any other value counts as unset */
    uint32_t isolation;                     /* enum isolation; any other value counts as unset */
    uint32_t is_of_job;        /* 1 = one of several processes of a job, which may share memory */
    uint32_t limits_container; /* 1 = the memory limits are those of its container, whose programs
                                  have them together */
    uint32_t reserved;
    uint64_t window_base; /* 0; or where a client that lost its server has its memory: it needs this
                             window or none */
    uint8_t token[HELLO_TOKEN_SIZE]; /* random; with window_base: the token of its attach,
                                        which no other process can know. All zero = none */
    char command[HELLO_COMMAND_MAX]; /* the command line with its NULs, for people; not trusted.
                                        Reading it in /proc could wait for the process's memory */
};

#define WELCOME_MAGIC 0x31574e46u /* "FNW1" */

/* The answer. Refused: this alone. Accepted: status 0, and the structure of attach.h follows. */
struct welcome {
    uint32_t magic; /* WELCOME_MAGIC */
    int32_t status; /* a CUresult: 0, or why not */
    char text[472]; /* a message that names the cause and the remedy; NUL-terminated */
};
