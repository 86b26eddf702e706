/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace of a server, in a memory file: a header, and records of one size.
 * For `funnel trace` the daemon made the file and the front end reads it; for a profiler the client
 * did and reads its own records. Times are of CLOCK_MONOTONIC.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC 0x31544e46u /* "FNT1" */
#define TRACE_RECORDS_MAX (1u << 18)
#define TRACE_NAME_MAX 128

/* The file of a profiler has fewer records. The server uses a record again after the client has
 * set its kind to 0. */
#define PROFILE_RECORDS_MAX (1u << 14)

enum trace_kind {
    TRACE_CLIENT = 1, /* a client is traced from here on: `name` is its command line */
    TRACE_COMMAND,    /* the server executed a command: `name` is its call */
    TRACE_KERNEL,     /* work on the device ... */
    TRACE_COPY,
    TRACE_MEMSET,
    TRACE_GRAPH,
    TRACE_RANGE, /* of the program, by NVTX; `stream` is the thread */
};

struct trace_record {
    _Atomic uint32_t kind; /* enum trace_kind; 0 until the rest is written */
    int32_t pid;           /* of the client, as the daemon knows it */
    uint32_t id;           /* of the client in its server */
    uint32_t uid;
    uint32_t device;
    uint32_t correlation; /* of a profiler: the number of the call that made the work */
    uint64_t stream;      /* the client's handle; 0 for commands; the thread of a range */
    uint64_t
        submitted_ns; /* when the server had given the work to the driver; commands: begin_ns */
    uint64_t begin_ns, end_ns;
    uint64_t bytes;
    uint64_t to, from;      /* a copy's addresses; 0 = not in the window */
    uint64_t stream_handle; /* the client's handles */
    uint64_t object_handle; /* of the function, or the graph */
    uint32_t shared_bytes;  /* dynamic shared memory of a kernel's block */
    uint32_t value;         /* of a memset */
    uint32_t grid[3], block[3];
    uint32_t in_graph; /* of a node of a graph: the low half of the graph's handle; else 0 */
    uint32_t node;     /* the node's number in that graph, from 1 */
    char name[TRACE_NAME_MAX];
};

struct trace_header {
    _Atomic uint32_t magic; /* TRACE_MAGIC once the server has begun */
    _Atomic uint32_t done;  /* 1: nothing is written any more */
    _Atomic uint32_t next;  /* records that have been asked for; more than there are were dropped */
    _Atomic uint32_t lost;  /* work on the device whose times are not known */
    uint64_t begin_ns;
    char device_name[128];
};

#define TRACE_FILE_SIZE \
    (sizeof(struct trace_header) + TRACE_RECORDS_MAX * sizeof(struct trace_record))
#define PROFILE_FILE_SIZE \
    (sizeof(struct trace_header) + PROFILE_RECORDS_MAX * sizeof(struct trace_record))

static inline struct trace_record *trace_records(struct trace_header *header)
{
    return (struct trace_record *)(header + 1);
}
