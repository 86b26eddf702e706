/* SPDX-License-Identifier: Apache-2.0 */
/* The history of devices and programs in `funnel top`: shares of the multiprocessors, one a sample.
 */
#pragma once

#include "top_sample.h"

#define TOP_DEVICES_MAX 16
#define TOP_HISTORY_LENGTH 512

/* Shares from 0 to 1; the newest stands at (count - 1) % TOP_HISTORY_LENGTH. */
struct top_series {
    float share[TOP_HISTORY_LENGTH];
    unsigned count;
};

/* A device, once where several servers share it. */
struct top_device {
    const struct server_device *device; /* of the newest sample */
    uint8_t uuid[16];
    unsigned ordinal; /* in its first server */
    uint64_t memory_used;
    struct server_sensors sensors;
    struct top_series sm_use;
};

struct top_program;

struct top_history {
    struct top_device device[TOP_DEVICES_MAX];
    unsigned device_count;
    struct top_program *programs; /* that run */
    unsigned program_count;
};

/* Adds a sample to all series. Programs that have ended are forgotten. */
void top_history_add(struct top_history *history, const struct top_sample *sample);

/* NULL for a program that has no sample. */
const struct top_series *top_history_of(const struct top_history *history,
                                        const struct command_client *client);

/* The share `back` samples ago; negative where there was none. */
float top_series_share(const struct top_series *series, unsigned back);

void top_history_fini(struct top_history *history);
