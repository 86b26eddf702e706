/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static partitions: an operator cuts devices into sets of multiprocessors that belong to nobody
 * else, and every client has to name the one it is for. In MPS 2 they are the daemon's (-S), in
 * MPS 3 a server's. The unit is a chunk, of 8 multiprocessors; before Hopper of 4, or 2 in MPS 3.
 */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"

#define STATICS_MAX 128
#define STATICS_UUID 41
#define STATICS_ID 16

struct static_partition {
    char name[65];           /* "" in MPS 2 */
    char device[64];         /* as it was asked for */
    char uuid[STATICS_UUID]; /* "" until its place on the device is known */
    char id[STATICS_ID];
    unsigned first, chunks; /* in chunks */
    unsigned chunk_sms;
    bool takes_remainder;   /* the multiprocessors behind the last chunk, too ... */
    unsigned remainder_sms; /* ... which are so many */
};

struct statics {
    bool on; /* clients have to name a partition */
    bool version3;
    struct server_ready devices; /* as a server said last; none until then */
    struct static_partition partition[STATICS_MAX];
    unsigned count;
};

unsigned statics_chunk_sms(const struct server_device *device, bool version3);
unsigned statics_chunks(const struct server_device *device, bool version3);
unsigned statics_used_chunks(const struct statics *statics, const char *uuid);

/* Of a partition, as far as its device is known. */
unsigned statics_sms(const struct static_partition *partition);

/* The one device that is called so, or NULL. */
const struct server_device *statics_device(const struct statics *statics, const char *name);

/* Cuts a partition out of what is free: NULL when that much is not free in one piece. */
struct static_partition *statics_add(struct statics *statics, const struct server_device *device,
                                     unsigned chunks);

/* Notes one, which statics_place() then finds a place for. NULL when there are too many. */
struct static_partition *statics_note(struct statics *statics, const char *name, const char *device,
                                      unsigned chunks, bool takes_remainder);

/* Where statics->devices has room: 0, -ENODEV when not just one device is called so, -ENOSPC. */
int statics_place(struct statics *statics, struct static_partition *partition);

/* Takes over what a server says of its devices, and finds a place for all anew: how many have
 * found none. */
unsigned statics_begin(struct statics *statics, const struct server_ready *devices);

/* By its id, or "DEVICE/id" with the beginning of a UUID or the device as it was asked for; NULL
 * when there is none. */
struct static_partition *statics_find(struct statics *statics, const char *name);

/* By its own name and any name of its device. */
struct static_partition *statics_named(struct statics *statics, const char *name,
                                       const char *device);

/* Is `device` a name of the partition's device? */
bool statics_is_on(const struct statics *statics, const struct static_partition *partition,
                   const char *device);

void statics_remove(struct statics *statics, struct static_partition *partition);

/* Is a client with these limits, on a server with these devices, in the partition? */
bool statics_holds(const struct static_partition *partition, const struct server_ready *devices,
                   const struct server_limits *limits);

/* Puts a client into the partition it names, and takes everything else from it. False when it has
 * to name one and does not, or the server does not have that device: then it has nothing. */
bool statics_bind(struct statics *statics, const struct server_ready *devices,
                  const struct hello *hello, struct server_limits *limits);
