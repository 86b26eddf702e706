/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SM share is the part of a device's multiprocessors for some streams of a client. One share
 * belongs to the client as a whole, others to contexts with a part of it. Each share has its own
 * legacy default stream. A share can change while its streams are at work.
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
    uint32_t number;             /* the client's number of it; 0 = the client as a whole */
    struct partition *partition; /* NULL = the whole device */
    unsigned sm_count;           /* as requested; with number 0 as granted */
    bool may_borrow;             /* it may run in `lent` while clients with parts of that rest */
    struct partition *lent;      /* its own part and what it borrows; NULL = the whole device */
    bool borrows;                /* it runs there now: lending.h */
    unsigned streams;            /* the number of its streams */
    unsigned blocking_streams;   /* of them, those that keep order with the legacy stream */
    bool listed;                 /* the share consists of the following groups of the client */
    unsigned group_count;
    uint8_t groups[SM_GROUPS_MAX];
    struct stream *legacy; /* owned by the stream code; NULL until the client creates it */
};

/* Limit of a client's further shares. */
#define SM_SHARES_MAX 64u

/* Takes the client's own share of a device, by its limits. Returns the driver's result;
 * `ret_sm_count` is the wanted number of multiprocessors, also after an error. */
CUresult sm_share_open(struct session *session, unsigned device, unsigned *ret_sm_count);

/* The client's own share of a device. */
const struct sm_share *sm_share_own(const struct session *session, unsigned device);

/* CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION when clients need static partitions and this client has
 * none on the device. */
CUresult sm_share_barred(const struct session *session, unsigned device);

/* The share of this number on this device, or NULL. */
struct sm_share *sm_share_find(struct session *session, const struct device *device,
                               uint32_t number);

/* The client's limits have changed: each share takes its new partition, `move` moves its streams
 * there, and the old partition is released. */
void sm_shares_follow_limits(struct session *session,
                             void (*move)(struct session *session, const struct sm_share *share));

/* The client's streams are gone: releases all partitions. */
void sm_shares_close_all(struct session *session);

/* From any thread: the number of multiprocessors of a device that the limits grant. */
unsigned sm_share_granted(struct server *server, const struct session_limits *limits,
                          unsigned device);

/* The partitions of all devices, and the shares of a session. 0 or -ENOMEM. */
int server_partitions_init(struct server *server);
void server_partitions_fini(struct server *server);
int session_sm_shares_init(struct session *session);
void session_sm_shares_fini(struct session *session);
