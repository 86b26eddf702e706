/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs behind the servers that a status query has asked. Servers of several users may share a
 * GPU, and each of them describes it. Here it stands once, and its UUID tells which one it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "status_query.h"

/* GPUs beyond these are left out. */
#define GPU_LIST_MAX 64u

struct gpu_figures {
    const struct server_device *device; /* as the first of its servers describes it */
    bool is_known;                      /* a server has said how much memory is free ... */
    uint64_t memory_free;               /* ... and this is the least that any of them has said */
    struct server_sensors sensors;      /* each as the first server that knows it says */
};

struct gpu_list {
    unsigned count;
    struct gpu_figures gpus[GPU_LIST_MAX];
};

/* The list refers to the query's reports. */
void gpu_list_read(const struct status_query *query, struct gpu_list *ret_list);
