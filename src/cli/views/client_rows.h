/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of a snapshot as rows: with what they did since the one before, filtered, sorted, and
 * in groups. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "snapshot.h"

struct client_row {
    const struct command_client *client; /* NULL in the row of a group */
    const struct command_server *server;
    char group[64]; /* the name of the group that the row heads, or is in; "" without groups */
    unsigned count; /* clients: 1, or those of the group */
    uint64_t memory, memory_peak; /* bytes, of all devices */
    uint64_t memory_swapped;      /* bytes of device memory that are in the host's */
    uint64_t memory_limit;        /* of the devices that it uses; 0 = none */
    uint64_t memory_total;        /* that these devices have */
    double launches_per_s, bytes_per_s;
    double sm_use, gpu_use; /* multiprocessors, and devices, that its kernels had on average: as a
                               share of those of a device */
    uint64_t launches, copies, copied_bytes;
    uint64_t call_ms;
};

struct client_rows {
    struct client_row *row;
    unsigned count;
};

struct client_column;

enum client_grouping { GROUP_NOT, GROUP_BY_USER, GROUP_BY_GROUP, GROUP_BY_SERVER };

/* How rows are chosen and ordered. */
struct client_choice {
    const char *filter;               /* words that all have to fit, or NULL: client_filter.c */
    const struct client_column *sort; /* NULL: as they come */
    bool reverse;
    enum client_grouping grouping;
};

/* Rows of `now`, with rates since `before` (NULL: since their start), which was taken `seconds`
 * earlier. They point into `now`. 0 or -ENOMEM. */
int client_rows_make(const struct snapshot *now, const struct snapshot *before, double seconds,
                     const struct client_choice *choice, struct client_rows *ret_rows);
void client_rows_fini(struct client_rows *rows);

/* Whether the client fits all words of a filter. WORD is a part of its command, user, group, server
 * or process id. NAME=VALUE is the whole of what the column of that name shows. */
bool client_filter_fits(const char *filter, const struct client_row *row);

/* Whether every NAME of NAME=VALUE is a column; else `ret_word` is the first that is none. */
bool client_filter_is_valid(const char *filter, char *ret_word, size_t capacity);
