/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits that operators set: the daemon's defaults, and each server's own, which start as a
 * copy of the defaults. They bind clients that come later. A client's own request can only tighten
 * them, with two exceptions: the priority, and whether totals of memory show the limit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu_uuid.h"
#include "server_protocol.h"

#define DEVICE_LIMITS_MAX 64

/* A memory limit under the device name that it was set with, whether such a device exists or not.
 */
struct device_limit {
    char device[64];
    char text[24]; /* "2G" */
    uint64_t bytes;
};

struct limits {
    uint32_t sm_centipercent;
    uint32_t priority;
    bool totals_show_limit;
    bool lend;          /* clients may run on multiprocessors of others that rest */
    bool oversubscribe; /* their memory may leave a device for that of others, and others' for it */
    uint32_t evict_after; /* seconds of rest after which their memory leaves; 0 = never */
    unsigned device_count;
    struct device_limit devices[DEVICE_LIMITS_MAX]; /* in the order they were set: the last wins */
};

/* Sets the limit of a device; 0 bytes remove it. 0, or -ENOSPC: too many names of devices. */
int limits_set_memory(struct limits *limits, const char *device, uint64_t bytes, const char *text);

/* The text it was set with, or NULL. */
const char *limits_memory_text(const struct limits *limits, const char *device);

bool device_is_named(const char *name, const struct server_device *device, unsigned ordinal);

/* A change of limits by an operator: only what is given changes. */
struct limit_change {
    bool lifts_share;         /* the share becomes the whole device */
    uint32_t sm_centipercent; /* 0 = stays */
    uint32_t sms;             /* the share as a number of multiprocessors; 0 = stays */
    bool sets_priority, sets_memory, sets_totals, sets_lend, sets_oversubscribe, sets_evict_after;
    bool totals_show_limit, lend, oversubscribe;
    uint32_t priority;
    uint32_t evict_after; /* seconds; 0 = never */
    uint32_t class;       /* of later clients: enum client_class; CLASS_UNSET = stays */
    uint64_t memory;      /* 0 = no limit */
    char device[64];      /* "" = all */
    bool sets_joint;      /* of a user or a group: what its clients may have together */
    uint64_t joint;       /* 0 = no limit */
    char joint_device[64];
};

/* What an operator has given a single client. It goes with the client to another server. */
struct own_limits {
    uint32_t sm_centipercent, priority, oversubscribe, evict_after;
    uint64_t memory[SERVER_MAX_DEVICES];
};

struct own_limits own_limits_of(const struct server_limits *limits);
void own_limits_apply(const struct own_limits *own, struct server_limits *limits);

/* Applies the change to `limits`, on a server with these devices. */
void limit_change_apply(const struct limit_change *change, const struct server_ready *ready,
                        struct server_limits *limits);

/* Applies its joint limit to a client; `limit` says whether the change is about the user or the
 * group. */
void limit_change_apply_joint(const struct limit_change *change, enum joint_limits limit,
                              const struct server_identity *identity,
                              const struct server_ready *ready, struct server_limits *limits);

/* The share of a device, in hundredths of a percent, that is `sms` of its multiprocessors. */
uint32_t centipercent_of_sms(unsigned sms, unsigned total);

/* The limits of a server's clients. `priority` is the daemon's default. */
void limits_of_server(const struct limits *server, uint32_t priority,
                      const struct server_ready *ready, struct server_limits *ret_limits);

/* Combines them with what a client asks for in its hello: less, or another priority. */
void limits_tighten(struct server_limits *limits, const struct hello *hello,
                    const struct server_ready *ready);

/* Where the memory limits of the hello are those of a container: all its programs have them
 * together. */
void limits_join_container(struct server_limits *limits, const struct hello *hello,
                           const struct server_identity *identity,
                           const struct server_ready *ready);
