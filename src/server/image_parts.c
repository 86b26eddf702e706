/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes images apart. Their headers are known to be sound; what compressed parts claim is not.
 */
#include "image_parts.h"

#include <elf.h>
#include <lz4.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "cleanup.h"

#define CONTAINER_MAGIC 0xba55ed50u
#define ENTRY_LZ4 0x2000u
#define ENTRY_ZSTD 0x8000u

/* Larger parts are not expanded just to be looked at. */
#define EXPANDED_MAX (64u << 20)

typedef bool part_test(enum image_part_kind kind, const void *part, size_t size);

struct entry {
    uint16_t kind;
    uint32_t header_size;
    uint32_t compressed_size;
    uint64_t payload_size;
    uint64_t flags;
    uint64_t plain_size;
};

static void read_entry(const unsigned char *bytes, struct entry *ret_entry)
{
    memcpy(&ret_entry->kind, bytes, 2);
    memcpy(&ret_entry->header_size, bytes + 4, 4);
    memcpy(&ret_entry->payload_size, bytes + 8, 8);
    memcpy(&ret_entry->compressed_size, bytes + 16, 4);
    memcpy(&ret_entry->flags, bytes + 40, 8);
    memcpy(&ret_entry->plain_size, bytes + 56, 8);
}

/* Expanded size, or -1. */
static long expand(const struct entry *entry, const void *payload, char *text, size_t size)
{
    if (entry->flags & ENTRY_LZ4)
        return LZ4_decompress_safe(payload, text, (int)entry->compressed_size, (int)size);
    size_t expanded = ZSTD_decompress(text, size, payload, entry->compressed_size);
    return ZSTD_isError(expanded) ? -1 : (long)expanded;
}

static bool test_compressed(const struct entry *entry, const unsigned char *payload,
                            part_test *test)
{
    if (entry->compressed_size > entry->payload_size || entry->plain_size > EXPANDED_MAX ||
        entry->compressed_size > EXPANDED_MAX)
        return true;
    _cleanup_free_ char *text = malloc(entry->plain_size + 1);
    long size = text ? expand(entry, payload, text, entry->plain_size) : -1;
    return size < 0 || test((enum image_part_kind)entry->kind, text, (size_t)size);
}

static bool test_entry(const struct entry *entry, const unsigned char *payload, part_test *test)
{
    if (entry->kind != IMAGE_PTX && entry->kind != IMAGE_ELF)
        return true;
    if (entry->flags & (ENTRY_LZ4 | ENTRY_ZSTD))
        return test_compressed(entry, payload, test);
    return test((enum image_part_kind)entry->kind, payload, entry->payload_size);
}

static bool test_container(const unsigned char *bytes, part_test *test)
{
    uint16_t header_size;
    uint64_t left;

    memcpy(&header_size, bytes + 6, sizeof(header_size));
    memcpy(&left, bytes + 8, sizeof(left));
    for (bytes += header_size; left;) {
        struct entry entry;
        read_entry(bytes, &entry);
        if (test_entry(&entry, bytes + entry.header_size, test))
            return true;
        bytes += entry.header_size + entry.payload_size;
        left -= entry.header_size + entry.payload_size;
    }
    return false;
}

bool image_any_part(const void *bytes, size_t size, part_test *test)
{
    uint32_t magic;

    memcpy(&magic, bytes, sizeof(magic));
    if (magic == CONTAINER_MAGIC)
        return test_container(bytes, test);
    return test(memcmp(bytes, ELFMAG, SELFMAG) ? IMAGE_PTX : IMAGE_ELF, bytes, size);
}
