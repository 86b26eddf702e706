/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the entries of a fat binary container. Every field is read byte-wise from within the bounds
 * the caller gave, so a container may lie at any alignment and say anything about itself.
 */
#include "fatbin.h"
#include "fatbin_format.h"

#include <errno.h>
#include <string.h>

static uint16_t get_u16(const uint8_t *bytes)
{
    uint16_t value;

    memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint32_t get_u32(const uint8_t *bytes)
{
    uint32_t value;

    memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint64_t get_u64(const uint8_t *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
    return value;
}

int fatbin_walk_init(struct fatbin_walk *walk, const void *bytes, size_t size)
{
    const uint8_t *header = bytes;

    if (size < CONTAINER_HEADER_SIZE || get_u32(header) != CONTAINER_MAGIC)
        return -EINVAL;

    size_t header_size = get_u16(header + CONTAINER_AT_HEADER_SIZE);
    uint64_t entries_size = get_u64(header + CONTAINER_AT_ENTRIES_SIZE);

    if (header_size < CONTAINER_HEADER_SIZE || header_size > size ||
        entries_size > size - header_size)
        return -EINVAL;
    walk->next = header + header_size;
    walk->end = walk->next + entries_size;
    return 0;
}

/* The compressed size excludes the padding; plain text is padded with NULs, which are cut off
 * later. */
static int entry_sizes(const uint8_t *header, size_t payload_size, struct fatbin_entry *entry)
{
    uint32_t compressed = get_u32(header + ENTRY_AT_COMPRESSED_SIZE);
    uint64_t plain = get_u64(header + ENTRY_AT_PLAIN_SIZE);

    if (!(entry->flags & (FATBIN_LZ4 | FATBIN_ZSTD))) {
        entry->stored_size = payload_size;
        entry->plain_size = payload_size;
        return 0;
    }
    if (compressed == 0 || compressed > payload_size || plain > FATBIN_PTX_LIMIT)
        return -EINVAL;
    entry->stored_size = compressed;
    entry->plain_size = plain;
    return 0;
}

int fatbin_walk_next(struct fatbin_walk *walk, struct fatbin_entry *ret_entry)
{
    const uint8_t *header = walk->next;
    size_t left = walk->end - walk->next;

    if (left == 0)
        return 0;
    if (left < ENTRY_HEADER_SIZE)
        return -EINVAL;

    size_t header_size = get_u32(header + ENTRY_AT_HEADER_SIZE);
    uint64_t payload_size = get_u64(header + ENTRY_AT_PAYLOAD_SIZE);

    if (header_size < ENTRY_HEADER_SIZE || header_size > left || payload_size > left - header_size)
        return -EINVAL;

    struct fatbin_entry entry = {
        .kind = get_u16(header + ENTRY_AT_KIND),
        .sm = get_u32(header + ENTRY_AT_SM),
        .version_minor = get_u16(header + ENTRY_AT_MINOR),
        .version_major = get_u16(header + ENTRY_AT_MAJOR),
        .flags = get_u64(header + ENTRY_AT_FLAGS),
        .payload = header + header_size,
    };

    if (entry_sizes(header, payload_size, &entry))
        return -EINVAL;
    walk->next = entry.payload + payload_size;
    *ret_entry = entry;
    return 1;
}
