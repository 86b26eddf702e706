/* SPDX-License-Identifier: Apache-2.0 */
/* See statics.h. */
#include "statics.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "client_limits.h"
#include "text.h"

unsigned statics_chunk_sms(const struct server_device *device, bool version3)
{
    if (device->compute_major >= 9)
        return 8;
    return version3 ? 2 : 4;
}

unsigned statics_chunks(const struct server_device *device, bool version3)
{
    return device->sm_count / statics_chunk_sms(device, version3);
}

unsigned statics_sms(const struct static_partition *partition)
{
    return partition->chunks * partition->chunk_sms + partition->remainder_sms;
}

unsigned statics_used_chunks(const struct statics *statics, const char *uuid)
{
    unsigned used = 0;

    for (unsigned i = 0; i < statics->count; i++)
        if (!strcmp(statics->partition[i].uuid, uuid))
            used += statics->partition[i].chunks;
    return used;
}

const struct server_device *statics_device(const struct statics *statics, const char *name)
{
    const struct server_device *found = NULL;

    for (unsigned i = 0; i < statics->devices.device_count; i++) {
        if (!device_is_named(name, &statics->devices.devices[i], i))
            continue;
        if (found)
            return NULL;
        found = &statics->devices.devices[i];
    }
    return found;
}

static bool is_free(const struct statics *statics, const char *uuid, unsigned first,
                    unsigned chunks)
{
    for (unsigned i = 0; i < statics->count; i++) {
        const struct static_partition *other = &statics->partition[i];

        if (!strcmp(other->uuid, uuid) && first < other->first + other->chunks &&
            other->first < first + chunks)
            return false;
    }
    return true;
}

/* Ids are never used again, so that a stale one in somebody's script fails. */
static void make_id(char id[STATICS_ID])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static unsigned char counter;

    memset(id, counter++, STATICS_ID);
    if (getrandom(id, STATICS_ID - 1, GRND_NONBLOCK) < 0)
        id[0] = (char)counter;
    for (int i = 0; i < STATICS_ID - 1; i++)
        id[i] = digits[id[i] & 63];
    id[STATICS_ID - 1] = '\0';
}

struct static_partition *statics_note(struct statics *statics, const char *name, const char *device,
                                      unsigned chunks, bool takes_remainder)
{
    struct static_partition *partition = &statics->partition[statics->count];

    if (statics->count == STATICS_MAX)
        return NULL;
    *partition = (struct static_partition){.chunks = chunks, .takes_remainder = takes_remainder};
    text_copy(partition->name, sizeof(partition->name), name);
    text_copy(partition->device, sizeof(partition->device), device);
    make_id(partition->id);
    statics->count++;
    return partition;
}

/* The remainder lies behind the last chunk, and so does who takes it. Drivers divide devices into
 * pairs of multiprocessors. */
static int place_on(struct statics *statics, struct static_partition *partition,
                    const struct server_device *device)
{
    unsigned total = statics_chunks(device, statics->version3), chunks = partition->chunks;
    unsigned chunk_sms = statics_chunk_sms(device, statics->version3), first = 0;
    char uuid[STATICS_UUID];

    device_uuid_text(device, uuid);
    if (chunks == 0 || chunks > total)
        return -ENOSPC;
    if (partition->takes_remainder)
        first = total - chunks;
    else
        while (first + chunks <= total && !is_free(statics, uuid, first, chunks))
            first++;
    if (first + chunks > total || !is_free(statics, uuid, first, chunks))
        return -ENOSPC;
    partition->first = first;
    partition->chunk_sms = chunk_sms;
    partition->remainder_sms =
        partition->takes_remainder ? (device->sm_count - total * chunk_sms) & ~1u : 0;
    text_copy(partition->uuid, sizeof(partition->uuid), uuid);
    return 0;
}

int statics_place(struct statics *statics, struct static_partition *partition)
{
    const struct server_device *device = statics_device(statics, partition->device);

    return device ? place_on(statics, partition, device) : -ENODEV;
}

/* Those whose place is given go first. */
unsigned statics_begin(struct statics *statics, const struct server_ready *devices)
{
    unsigned failed = 0;

    statics->devices = *devices;
    for (unsigned i = 0; i < statics->count; i++)
        *statics->partition[i].uuid = '\0';
    for (int remainder = 1; remainder >= 0; remainder--)
        for (unsigned i = 0; i < statics->count; i++)
            if (statics->partition[i].takes_remainder == remainder)
                failed += statics_place(statics, &statics->partition[i]) != 0;
    return failed;
}

struct static_partition *statics_add(struct statics *statics, const struct server_device *device,
                                     unsigned chunks)
{
    struct static_partition *partition = statics_note(statics, "", "", chunks, false);

    if (!partition)
        return NULL;
    if (!place_on(statics, partition, device))
        return partition;
    statics_remove(statics, partition);
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

struct static_partition *statics_find(struct statics *statics, const char *name)
{
    const char *slash = strchr(name, '/');
    const char *id = slash ? slash + 1 : name;

    for (unsigned i = 0; i < statics->count; i++) {
        struct static_partition *partition = &statics->partition[i];

        if (!strcmp(partition->id, id) &&
            (!slash || begins_with(partition->uuid, name, (size_t)(slash - name)) ||
             is_same(partition->device, name, (size_t)(slash - name))))
            return partition;
    }
    return NULL;
}

void statics_remove(struct statics *statics, struct static_partition *partition)
{
    const struct static_partition *end = &statics->partition[statics->count--];

    memmove(partition, partition + 1, (size_t)((char *)end - (char *)(partition + 1)));
}

/* The device's place among the server's, or -1. */
static int place_of(const struct static_partition *partition, const struct server_ready *devices)
{
    char uuid[STATICS_UUID];

    for (unsigned i = 0; i < devices->device_count; i++) {
        device_uuid_text(&devices->devices[i], uuid);
        if (!strcmp(uuid, partition->uuid))
            return (int)i;
    }
    return -1;
}

bool statics_is_on(const struct statics *statics, const struct static_partition *partition,
                   const char *device)
{
    int place = place_of(partition, &statics->devices);

    return !strcasecmp(partition->device, device) ||
           (place >= 0 &&
            device_is_named(device, &statics->devices.devices[place], (unsigned)place));
}

struct static_partition *statics_named(struct statics *statics, const char *name,
                                       const char *device)
{
    for (unsigned i = 0; i < statics->count; i++)
        if (!strcmp(statics->partition[i].name, name) &&
            statics_is_on(statics, &statics->partition[i], device))
            return &statics->partition[i];
    return NULL;
}

bool statics_holds(const struct static_partition *partition, const struct server_ready *devices,
                   const struct server_limits *limits)
{
    return limits->fixed_count && (int)limits->fixed_device == place_of(partition, devices) &&
           limits->fixed_first == partition->first * partition->chunk_sms;
}

bool statics_bind(struct statics *statics, const struct server_ready *devices,
                  const struct hello *hello, struct server_limits *limits)
{
    const struct static_partition *partition;
    int place;

    if (!statics->on)
        return true;
    limits->sm_centipercent = 10000;
    limits->fixed_only = 1;
    partition = *hello->sm_partition ? statics_find(statics, hello->sm_partition) : NULL;
    place = partition ? place_of(partition, devices) : -1;
    if (place < 0)
        return false;
    limits->fixed_device = (uint32_t)place;
    limits->fixed_first = partition->first * partition->chunk_sms;
    limits->fixed_count = statics_sms(partition);
    return true;
}
