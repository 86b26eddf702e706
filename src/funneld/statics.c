/* SPDX-License-Identifier: Apache-2.0 */
/* See statics.h. */
#include "statics.h"

#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "client_limits.h"
#include "text.h"

unsigned statics_chunk_sms(const struct server_device *device)
{
    return device->compute_major >= 9 ? 8 : 4;
}

unsigned statics_chunks(const struct server_device *device)
{
    return device->sm_count / statics_chunk_sms(device);
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

struct static_partition *statics_add(struct statics *statics, const struct server_device *device,
                                     unsigned chunks)
{
    unsigned total = statics_chunks(device), first = 0;
    struct static_partition *partition;
    char uuid[STATICS_UUID];

    device_uuid_text(device, uuid);
    while (first + chunks <= total && !is_free(statics, uuid, first, chunks))
        first++;
    if (chunks == 0 || chunks > total || first + chunks > total || statics->count == STATICS_MAX)
        return NULL;
    partition = &statics->partition[statics->count++];
    *partition = (struct static_partition){
        .first = first, .chunks = chunks, .chunk_sms = statics_chunk_sms(device)};
    text_copy(partition->uuid, sizeof(partition->uuid), uuid);
    make_id(partition->id);
    return partition;
}

struct static_partition *statics_find(struct statics *statics, const char *name)
{
    const char *slash = strchr(name, '/');
    const char *id = slash ? slash + 1 : name;

    for (unsigned i = 0; i < statics->count; i++) {
        struct static_partition *partition = &statics->partition[i];

        if (!strcmp(partition->id, id) &&
            (!slash || !strncasecmp(partition->uuid, name, (size_t)(slash - name))))
            return partition;
    }
    return NULL;
}

void statics_remove(struct statics *statics, struct static_partition *partition)
{
    *partition = statics->partition[--statics->count];
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
    partition = *hello->sm_partition ? statics_find(statics, hello->sm_partition) : NULL;
    place = partition ? place_of(partition, devices) : -1;
    if (place < 0)
        return false;
    limits->sm_centipercent = 10000;
    limits->fixed_device = (uint32_t)place;
    limits->fixed_first = partition->first * partition->chunk_sms;
    limits->fixed_count = partition->chunks * partition->chunk_sms;
    return true;
}
