/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kernels of an image may print. Those that do call a function of a known name, which
 * stands in the symbol table of machine code as in the text of PTX. Parts of a fat binary may be
 * compressed; one that does not expand counts as printing.
 */
#include <lz4.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "cleanup.h"
#include "image.h"

#define CONTAINER_MAGIC 0xba55ed50u
#define ENTRY_LZ4 0x2000u
#define ENTRY_ZSTD 0x8000u

/* Larger parts are not expanded just for this. */
#define EXPANDED_MAX (64u << 20)

struct entry {
    uint32_t header_size;
    uint32_t compressed_size;
    uint64_t payload_size;
    uint64_t flags;
    uint64_t plain_size;
};

static void read_entry(const unsigned char *bytes, struct entry *ret_entry)
{
    memcpy(&ret_entry->header_size, bytes + 4, 4);
    memcpy(&ret_entry->payload_size, bytes + 8, 8);
    memcpy(&ret_entry->compressed_size, bytes + 16, 4);
    memcpy(&ret_entry->flags, bytes + 40, 8);
    memcpy(&ret_entry->plain_size, bytes + 56, 8);
}

static bool mentions(const void *bytes, size_t size)
{
    return memmem(bytes, size, "vprintf", strlen("vprintf"));
}

/* Expanded size, or -1. */
static long expand(const struct entry *entry, const void *payload, char *text, size_t size)
{
    if (entry->flags & ENTRY_LZ4)
        return LZ4_decompress_safe(payload, text, (int)entry->compressed_size, (int)size);
    size_t expanded = ZSTD_decompress(text, size, payload, entry->compressed_size);
    return ZSTD_isError(expanded) ? -1 : (long)expanded;
}

static bool compressed_prints(const struct entry *entry, const unsigned char *payload)
{
    if (entry->compressed_size > entry->payload_size || entry->plain_size > EXPANDED_MAX ||
        entry->compressed_size > EXPANDED_MAX)
        return true;
    _cleanup_free_ char *text = malloc(entry->plain_size + 1);
    long size = text ? expand(entry, payload, text, entry->plain_size) : -1;
    return size < 0 || mentions(text, (size_t)size);
}

static bool entry_prints(const struct entry *entry, const unsigned char *payload)
{
    if (entry->flags & (ENTRY_LZ4 | ENTRY_ZSTD))
        return compressed_prints(entry, payload);
    return mentions(payload, entry->payload_size);
}

static bool container_prints(const unsigned char *bytes)
{
    uint16_t header_size;
    uint64_t left;

    memcpy(&header_size, bytes + 6, sizeof(header_size));
    memcpy(&left, bytes + 8, sizeof(left));
    for (bytes += header_size; left;) {
        struct entry entry;
        read_entry(bytes, &entry);
        if (entry_prints(&entry, bytes + entry.header_size))
            return true;
        bytes += entry.header_size + entry.payload_size;
        left -= entry.header_size + entry.payload_size;
    }
    return false;
}

bool image_prints(const void *bytes, size_t size)
{
    uint32_t magic;

    memcpy(&magic, bytes, sizeof(magic));
    return magic == CONTAINER_MAGIC ? container_prints(bytes) : mentions(bytes, size);
}
