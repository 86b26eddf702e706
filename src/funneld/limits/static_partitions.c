/* SPDX-License-Identifier: Apache-2.0 */
/* See static_partitions.h. */
#include "static_partitions.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "client_limits.h"
#include "text.h"

unsigned static_partitions_chunk_sms(const struct server_device *device, bool version3)
{
    if (device->compute_major >= 9)
        return 8;
    return version3 ? 2 : 4;
}

unsigned static_partitions_chunks(const struct server_device *device, bool version3)
{
    unsigned sms = device->clustered_sms ? device->clustered_sms : device->sm_count;

    return sms / static_partitions_chunk_sms(device, version3);
}

unsigned static_partitions_sms(const struct static_partition *partition)
{
    return partition->chunks * partition->chunk_sms + partition->remainder_sms;
}

unsigned static_partitions_used_chunks(const struct static_partitions *partitions, const char *uuid)
{
    unsigned used = 0;

    for (unsigned i = 0; i < partitions->count; i++)
        if (!strcmp(partitions->partition[i].uuid, uuid))
            used += partitions->partition[i].chunks;
    return used;
}

const struct server_device *static_partitions_device(const struct static_partitions *partitions,
                                                     const char *name)
{
    const struct server_device *found = NULL;

    for (unsigned i = 0; i < partitions->devices.device_count; i++) {
        if (!device_is_named(name, &partitions->devices.devices[i], i))
            continue;
        if (found)
            return NULL;
        found = &partitions->devices.devices[i];
    }
    return found;
}

/* But for `own`, which may be NULL. */
static bool is_free(const struct static_partitions *partitions, const struct static_partition *own,
                    const char *uuid, unsigned first, unsigned chunks)
{
    for (unsigned i = 0; i < partitions->count; i++) {
        const struct static_partition *other = &partitions->partition[i];

        if (other != own && !strcmp(other->uuid, uuid) && first < other->first + other->chunks &&
            other->first < first + chunks)
            return false;
    }
    return true;
}

/* Ids are never used again, so that a stale one in a script fails. */
static void make_id(char id[STATIC_PARTITION_ID])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static unsigned char counter;

    memset(id, counter++, STATIC_PARTITION_ID);
    if (getrandom(id, STATIC_PARTITION_ID - 1, GRND_NONBLOCK) < 0)
        id[0] = (char)counter;
    for (int i = 0; i < STATIC_PARTITION_ID - 1; i++)
        id[i] = digits[id[i] & 63];
    /* An id that begins with - would be read as an option of the command that names it. */
    if (*id == '-')
        *id = 'A';
    id[STATIC_PARTITION_ID - 1] = '\0';
}

struct static_partition *static_partitions_define(struct static_partitions *partitions,
                                                  const char *name, const char *device,
                                                  unsigned chunks, bool takes_remainder)
{
    struct static_partition *partition = &partitions->partition[partitions->count];

    if (partitions->count == STATIC_PARTITIONS_MAX)
        return NULL;
    *partition = (struct static_partition){.chunks = chunks, .takes_remainder = takes_remainder};
    text_copy(partition->name, sizeof(partition->name), name);
    text_copy(partition->device, sizeof(partition->device), device);
    make_id(partition->id);
    partitions->count++;
    return partition;
}

/* Drivers divide devices into pairs of multiprocessors. */
static void settle(struct static_partitions *partitions, struct static_partition *partition,
                   const struct server_device *device, unsigned first)
{
    unsigned total = static_partitions_chunks(device, partitions->version3);

    partition->first = first;
    partition->chunk_sms = static_partitions_chunk_sms(device, partitions->version3);
    partition->remainder_sms =
        partition->takes_remainder ? (device->sm_count - total * partition->chunk_sms) & ~1u : 0;
    device_uuid_text(device, partition->uuid);
}

/* The remainder is behind the last chunk, so a partition that takes it has the last chunks. */
static int place_on(struct static_partitions *partitions, struct static_partition *partition,
                    const struct server_device *device)
{
    unsigned total = static_partitions_chunks(device, partitions->version3),
             chunks = partition->chunks;
    unsigned first = 0;
    char uuid[STATIC_PARTITION_UUID];

    device_uuid_text(device, uuid);
    if (chunks == 0 || chunks > total)
        return -ENOSPC;
    if (partition->takes_remainder)
        first = total - chunks;
    else
        while (first + chunks <= total && !is_free(partitions, partition, uuid, first, chunks))
            first++;
    if (first + chunks > total || !is_free(partitions, partition, uuid, first, chunks))
        return -ENOSPC;
    settle(partitions, partition, device, first);
    return 0;
}

int static_partitions_place(struct static_partitions *partitions,
                            struct static_partition *partition)
{
    const struct server_device *device = static_partitions_device(partitions, partition->device);

    return device ? place_on(partitions, partition, device) : -ENODEV;
}

/* Whether the place that it has, or had on the devices of an earlier server, is right. */
static bool keeps_place(struct static_partitions *partitions, struct static_partition *partition)
{
    const struct server_device *device = static_partitions_device(partitions, partition->device);
    unsigned total = device ? static_partitions_chunks(device, partitions->version3) : 0;
    unsigned first = partition->first, chunks = partition->chunks;
    char uuid[STATIC_PARTITION_UUID] = "";

    if (device)
        device_uuid_text(device, uuid);
    if (!device || strcmp(uuid, partition->uuid) || chunks > total || first > total - chunks ||
        (partition->takes_remainder && first != total - chunks) ||
        !is_free(partitions, partition, uuid, first, chunks))
        return false;
    settle(partitions, partition, device, first);
    return true;
}

static void drop_wrong_places(struct static_partitions *partitions)
{
    for (unsigned i = 0; i < partitions->count; i++)
        if (!keeps_place(partitions, &partitions->partition[i]))
            *partitions->partition[i].uuid = '\0';
}

/* Partitions that take the remainder can be in one place only, so they are placed first. */
unsigned static_partitions_begin(struct static_partitions *partitions,
                                 const struct server_ready *devices)
{
    unsigned failed = 0;

    partitions->devices = *devices;
    drop_wrong_places(partitions);
    for (int remainder = 1; remainder >= 0; remainder--)
        for (unsigned i = 0; i < partitions->count; i++)
            if (partitions->partition[i].takes_remainder == remainder &&
                !*partitions->partition[i].uuid)
                failed += static_partitions_place(partitions, &partitions->partition[i]) != 0;
    return failed;
}

struct static_partition *static_partitions_add(struct static_partitions *partitions,
                                               const struct server_device *device, unsigned chunks)
{
    struct static_partition *partition;
    char uuid[STATIC_PARTITION_UUID];

    device_uuid_text(device, uuid);
    partition = static_partitions_define(partitions, "", uuid, chunks, false);
    if (!partition)
        return NULL;
    if (!place_on(partitions, partition, device))
        return partition;
    static_partitions_remove(partitions, partition);
    return NULL;
}

static bool begins_with(const char *uuid, const char *name, size_t length)
{
    return length <= strlen(uuid) && !strncasecmp(uuid, name, length);
}

static bool is_same(const char *device, const char *name, size_t length)
{
    return length == strlen(device) && length && !strncasecmp(device, name, length);
}

struct static_partition *static_partitions_find(struct static_partitions *partitions,
                                                const char *name)
{
    const char *slash = strchr(name, '/');
    const char *id = slash ? slash + 1 : name;

    for (unsigned i = 0; i < partitions->count; i++) {
        struct static_partition *partition = &partitions->partition[i];

        if (!strcmp(partition->id, id) &&
            (!slash || begins_with(partition->uuid, name, (size_t)(slash - name)) ||
             is_same(partition->device, name, (size_t)(slash - name))))
            return partition;
    }
    return NULL;
}

void static_partitions_remove(struct static_partitions *partitions,
                              struct static_partition *partition)
{
    const struct static_partition *end = &partitions->partition[partitions->count--];

    memmove(partition, partition + 1, (size_t)((char *)end - (char *)(partition + 1)));
}

/* The ordinal of the partition's device on the server, or -1. */
static int place_of(const struct static_partition *partition, const struct server_ready *devices)
{
    char uuid[STATIC_PARTITION_UUID];

    for (unsigned i = 0; i < devices->device_count; i++) {
        device_uuid_text(&devices->devices[i], uuid);
        if (!strcmp(uuid, partition->uuid))
            return (int)i;
    }
    return -1;
}

bool static_partitions_is_on_device(const struct static_partitions *partitions,
                                    const struct static_partition *partition, const char *device)
{
    int place = place_of(partition, &partitions->devices);

    return !strcasecmp(partition->device, device) ||
           (place >= 0 &&
            device_is_named(device, &partitions->devices.devices[place], (unsigned)place));
}

struct static_partition *static_partitions_named(struct static_partitions *partitions,
                                                 const char *name, const char *device)
{
    for (unsigned i = 0; i < partitions->count; i++)
        if (!strcmp(partitions->partition[i].name, name) &&
            static_partitions_is_on_device(partitions, &partitions->partition[i], device))
            return &partitions->partition[i];
    return NULL;
}

bool static_partitions_holds(const struct static_partition *partition,
                             const struct server_ready *devices, const struct server_limits *limits)
{
    return limits->fixed_count && (int)limits->fixed_device == place_of(partition, devices) &&
           limits->fixed_first == partition->first * partition->chunk_sms;
}

/* Bit c: chunk c of a device. Chunks beyond the 64th are not lent. */
static uint64_t chunk_mask(const struct static_partition *partition)
{
    uint64_t mask = 0;

    for (unsigned c = partition->first; c < partition->first + partition->chunks && c < 64; c++)
        mask |= 1ull << c;
    return mask;
}

bool static_partitions_lends(const struct static_partition *partition,
                             const struct server_ready *devices, const struct server_limits *limits)
{
    return limits->fixed_count && (int)limits->fixed_device == place_of(partition, devices) &&
           limits->borrow_chunks & chunk_mask(partition);
}

/* The first `count` chunks of that mask. */
static uint64_t first_chunks(uint64_t mask, unsigned count)
{
    uint64_t first = 0;

    for (; mask && count; count--, mask &= mask - 1)
        first |= mask & -mask;
    return first;
}

/* The chunks of other partitions that clients of `own` may borrow: the first ones of the device
 * that are shareable. */
static uint64_t chunks_for(const struct static_partitions *partitions,
                           const struct static_partition *own)
{
    uint64_t shareable = 0;

    if (own->most_chunks <= own->chunks)
        return 0;
    for (unsigned i = 0; i < partitions->count; i++) {
        const struct static_partition *other = &partitions->partition[i];

        if (other != own && other->is_shareable && *other->uuid && !strcmp(other->uuid, own->uuid))
            shareable |= chunk_mask(other);
    }
    return first_chunks(shareable, own->most_chunks - own->chunks);
}

bool static_partitions_bind(const struct static_partitions *partitions,
                            const struct server_ready *devices,
                            const struct static_partition *partition, struct server_limits *limits)
{
    int place;

    if (!partitions->on)
        return true;
    limits->sm_centipercent = 10000;
    limits->fixed_only = 1;
    limits->may_borrow = 0;
    place = partition ? place_of(partition, devices) : -1;
    if (place < 0)
        return false;
    limits->fixed_device = (uint32_t)place;
    limits->fixed_first = partition->first * partition->chunk_sms;
    limits->fixed_count = static_partitions_sms(partition);
    limits->borrow_chunks = chunks_for(partitions, partition);
    limits->borrow_chunk_sms = partition->chunk_sms;
    limits->may_borrow = limits->borrow_chunks != 0;
    return true;
}
