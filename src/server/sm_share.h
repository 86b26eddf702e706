/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A share is the part of a device on which some streams of a client run: one that belongs to the
 * client as a whole, and more for contexts that have a part of that. Each has a legacy default
 * stream of its own. A share can change while its streams are at work.
 */
#pragma once

#include "list.h"
#include "partition.h"

struct session;
struct stream;

struct sm_share {
    struct list link;
    const struct device *device;
    uint32_t number;             /* what the client calls it; 0 = the client's as a whole */
    struct partition *partition; /* NULL = the whole device */
    unsigned sm_count;           /* as it was asked for; with number 0 as it was granted */
    struct stream *legacy;       /* NULL until the client makes it */
};

/* What one client may have of them, besides its own. */
#define SM_SHARES_MAX 64u

/* Session thread: the client's own share of a device, by its limits. With an error, `ret_sm_count`
 * tells how many multiprocessors it would be. */
CUresult sm_share_open(struct session *session, unsigned device, unsigned *ret_sm_count);

/* CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION where devices are divided by static partitions alone
 * and the client is in none of this device. */
CUresult sm_share_barred(const struct session *session, unsigned device);

/* The share that the client calls so on this device, or NULL. */
struct sm_share *sm_share_find(struct session *session, const struct device *device,
                               uint32_t number);

/* Session thread: the client's limits have changed, and its streams follow. */
void sm_shares_follow_limits(struct session *session);

/* Session thread: its streams are gone. */
void sm_shares_close_all(struct session *session);
