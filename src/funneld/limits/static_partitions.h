/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static partitions: an operator divides devices into sets of multiprocessors, each for its own
 * clients only, and every client has to name its partition. In MPS 2 they belong to the daemon
 * (-S), in MPS 3 to a server. The unit is a chunk of 8 multiprocessors; before Hopper of 4, or 2 in
 * MPS 3.
 */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"

#define STATIC_PARTITIONS_MAX 128
#define STATIC_PARTITION_UUID 41
#define STATIC_PARTITION_ID 16

struct static_partition {
    char name[65];                    /* "" in MPS 2 */
    char device[64];                  /* as it was asked for */
    char uuid[STATIC_PARTITION_UUID]; /* "" until it has a place on a device */
    char id[STATIC_PARTITION_ID];
    unsigned first, chunks; /* in chunks */
    unsigned chunk_sms;
    bool takes_remainder;   /* the multiprocessors behind the last chunk, too ... */
    unsigned remainder_sms; /* ... which are so many */
    bool is_shareable;      /* its chunks are lent while its clients rest */
    unsigned most_chunks;   /* that its clients run on, with what they borrow; 0 = its own only */
    bool is_of_file;        /* the configuration file has defined it, and no command */
};

struct static_partitions {
    bool on; /* clients have to name a partition */
    bool version3;
    struct server_ready devices; /* as a server reported last; none until then */
    struct static_partition partition[STATIC_PARTITIONS_MAX];
    unsigned count;
};

unsigned static_partitions_chunk_sms(const struct server_device *device, bool version3);

/* How many chunks a device has: those in which thread block clusters run, as with NVIDIA. */
unsigned static_partitions_chunks(const struct server_device *device, bool version3);
unsigned static_partitions_used_chunks(const struct static_partitions *partitions,
                                       const char *uuid);

/* The multiprocessors of a partition that has a place. */
unsigned static_partitions_sms(const struct static_partition *partition);

/* The only device of that name, or NULL. */
const struct server_device *static_partitions_device(const struct static_partitions *partitions,
                                                     const char *name);

/* Creates a partition in free chunks: NULL when so many are not free side by side. */
struct static_partition *static_partitions_add(struct static_partitions *partitions,
                                               const struct server_device *device, unsigned chunks);

/* Records a partition without a place; static_partitions_place() finds one. NULL when there are too
 * many. */
struct static_partition *static_partitions_define(struct static_partitions *partitions,
                                                  const char *name, const char *device,
                                                  unsigned chunks, bool takes_remainder);

/* Finds a place on partitions->devices: 0, -ENODEV unless exactly one device has the name, -ENOSPC.
 */
int static_partitions_place(struct static_partitions *partitions,
                            struct static_partition *partition);

/* Takes over the devices that a server reports, and finds places for all partitions; one that has a
 * place which is right there keeps it. Returns the number of those that have none. */
unsigned static_partitions_begin(struct static_partitions *partitions,
                                 const struct server_ready *devices);

/* By its id, or "DEVICE/id" with the beginning of a UUID or the device as it was asked for; NULL
 * when there is none. */
struct static_partition *static_partitions_find(struct static_partitions *partitions,
                                                const char *name);

/* By its own name and any name of its device. */
struct static_partition *static_partitions_named(struct static_partitions *partitions,
                                                 const char *name, const char *device);

/* Whether `device` is a name of the partition's device. */
bool static_partitions_is_on_device(const struct static_partitions *partitions,
                                    const struct static_partition *partition, const char *device);

void static_partitions_remove(struct static_partitions *partitions,
                              struct static_partition *partition);

/* Whether a client with these limits, on a server with these devices, is in the partition. */
bool static_partitions_holds(const struct static_partition *partition,
                             const struct server_ready *devices,
                             const struct server_limits *limits);

/* Whether a client with these limits may borrow chunks of the partition. */
bool static_partitions_lends(const struct static_partition *partition,
                             const struct server_ready *devices,
                             const struct server_limits *limits);

/* Limits a client to its partition, NULL = it has none. False when it has to have one and has none,
 * or the server does not have that device: then it gets no multiprocessors. */
bool static_partitions_bind(const struct static_partitions *partitions,
                            const struct server_ready *devices,
                            const struct static_partition *partition, struct server_limits *limits);
