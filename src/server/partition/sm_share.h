/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SM share is the part of a device's multiprocessors on which some streams of a client run: one
 * that belongs to the client as a whole, and more for contexts that have a part of that. Each has a
 * legacy default stream of its own. A share can change while its streams are at work.
 *
 * Functions are the session thread's unless their comment says otherwise.
 */
#pragma once

#include "list.h"
#include "partition.h"
#include "server.h"
#include "session.h"

struct stream;

struct sm_share {
    struct list link; /* in the list of those of contexts */
    const struct device *device;
    uint32_t number;             /* how the client calls it; 0 = the client's as a whole */
    struct partition *partition; /* NULL = the whole device */
    unsigned sm_count;           /* as it was asked for; with number 0 as it was granted */
    unsigned streams;            /* how many run in it */
    bool listed; /* of just these of the client's groups, of which there are so many */
    unsigned group_count;
    uint8_t groups[SM_GROUPS_MAX];
    struct stream *legacy; /* owned by the stream code; NULL until the client creates it */
};

/* How many a client may have besides its own. */
#define SM_SHARES_MAX 64u

/* Takes the client's own share of a device, by its limits. What the driver says; with an error
 * `ret_sm_count` is how many multiprocessors it would have been. */
CUresult sm_share_open(struct session *session, unsigned device, unsigned *ret_sm_count);

/* The client's own share of a device. */
const struct sm_share *sm_share_own(const struct session *session, unsigned device);

/* CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION where devices are divided by static partitions alone
 * and the client is in none of this device. */
CUresult sm_share_barred(const struct session *session, unsigned device);

/* The share of this number on this device, or NULL. */
struct sm_share *sm_share_find(struct session *session, const struct device *device,
                               uint32_t number);

/* The client's limits have changed: each share gets the partition that it may have now, then `move`
 * moves its streams there, and then the old partition is given back. */
void sm_shares_follow_limits(struct session *session,
                             void (*move)(struct session *session, const struct sm_share *share));

/* The client's streams are gone: gives all partitions back. */
void sm_shares_close_all(struct session *session);

/* From any thread: how many multiprocessors of a device the limits grant. */
unsigned sm_share_granted(struct server *server, const struct session_limits *limits,
                          unsigned device);

/* The partitions of all devices, and the shares of a session. 0 or -ENOMEM. */
int server_partitions_init(struct server *server);
void server_partitions_fini(struct server *server);
int session_sm_shares_init(struct session *session);
void session_sm_shares_fini(struct session *session);
