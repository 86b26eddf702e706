/* SPDX-License-Identifier: Apache-2.0 */
/* The records that servers wrote while they were traced. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "server_protocol.h"
#include "trace_format.h"

struct trace_entry {
    struct trace_record record;           /* checked: the kind is known, the name ends */
    unsigned server;                      /* index in struct trace_data */
    const struct trace_entry *waited_for; /* other client's work that it waited behind, or NULL */
    uint64_t waited_ns;                   /* between its submission and its begin */
};

struct trace_server {
    char name[SERVER_NAME_MAX];
    int32_t pid;
    char device[128];
    unsigned count; /* its records: while they are taken it may write more */
};

#define TRACE_SERVERS_MAX 64

struct trace_data {
    struct trace_server servers[TRACE_SERVERS_MAX];
    struct trace_header *files[TRACE_SERVERS_MAX];
    unsigned server_count;
    struct trace_entry *entries; /* by the time of their begin */
    unsigned count;
    uint64_t begin_ns;
    uint64_t lost; /* work without times, and records for which there was no space */
};

/* Has the servers traced for that time, of one client or (0) all, and waits. Ends early, with what
 * there is, when `stop` becomes true. 0, or 1 after an error message. */
int trace_take(unsigned seconds, long client, const volatile sig_atomic_t *stop,
               struct trace_data *ret_data);
void trace_fini(struct trace_data *data);

static inline bool trace_is_work(const struct trace_entry *entry)
{
    return entry->record.kind >= TRACE_KERNEL && entry->record.kind <= TRACE_GRAPH;
}

/* Chrome's and Perfetto's JSON: 0, or 1 after an error message. */
int trace_write_json(const struct trace_data *data, const char *path);

/* The kernels of each client that took longest, as text. */
int trace_print_summary(const struct trace_data *data);
