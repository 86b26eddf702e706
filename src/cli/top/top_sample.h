/* SPDX-License-Identifier: Apache-2.0 */
/* The sample that `funnel top` shows at one moment: two snapshots, one after the other. */
#pragma once

#include "client_rows.h"
#include "command_client.h"

struct top_sample {
    struct paths paths;
    int fd; /* to the daemon, or -1 */
    struct snapshot now, before;
    bool has_now, has_before;
    double at, seconds;              /* of the clock; between the two */
    char reason[COMMAND_REASON_MAX]; /* why there is no new snapshot, or "" */
};

void top_sample_init(struct top_sample *sample, const struct paths *paths);
void top_sample_fini(struct top_sample *sample);

/* Takes a snapshot; false with a reason when the daemon does not answer. */
bool top_sample_take(struct top_sample *sample);

/* "12 programs of 2 users, 1 waits for a server" and so on: one line. */
void top_sample_title(const struct top_sample *sample, char *line, size_t capacity);

/* Line `index` on a device of a server; false when there are no more. */
bool top_sample_device(const struct top_sample *sample, unsigned index, char *line,
                       size_t capacity);
