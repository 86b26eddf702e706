/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static partitions (-S): an operator cuts devices into sets of multiprocessors that belong to
 * nobody else, and every client has to name the one it is for. The unit is a chunk, of 8
 * multiprocessors, or of 4 before Hopper.
 */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"

#define STATICS_MAX 128
#define STATICS_UUID 41
#define STATICS_ID 16

struct static_partition {
    char uuid[STATICS_UUID];
    char id[STATICS_ID];
    unsigned first, chunks; /* in chunks */
    unsigned chunk_sms;
};

struct statics {
    bool on;
    struct server_ready devices; /* as a server said last; none until then */
    struct static_partition partition[STATICS_MAX];
    unsigned count;
};

unsigned statics_chunk_sms(const struct server_device *device);
unsigned statics_chunks(const struct server_device *device);
unsigned statics_used_chunks(const struct statics *statics, const char *uuid);

/* The one device that is called so, or NULL. */
const struct server_device *statics_device(const struct statics *statics, const char *name);

/* Cuts a partition out of what is free: NULL when that much is not free in one piece. */
struct static_partition *statics_add(struct statics *statics, const struct server_device *device,
                                     unsigned chunks);

/* By its id, or "UUID/id" with the beginning of a UUID; NULL when there is none. */
struct static_partition *statics_find(struct statics *statics, const char *name);

void statics_remove(struct statics *statics, struct static_partition *partition);

/* Is a client with these limits, on a server with these devices, in the partition? */
bool statics_holds(const struct static_partition *partition, const struct server_ready *devices,
                   const struct server_limits *limits);

/* Puts a client into the partition it names. False when it has to name one and does not, or the
 * server does not have that device. */
bool statics_bind(struct statics *statics, const struct server_ready *devices,
                  const struct hello *hello, struct server_limits *limits);
