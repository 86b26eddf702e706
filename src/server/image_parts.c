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
#include "image_bundle.h"
#include "image_containers.h"

#define ENTRY_LZ4 0x2000u
#define ENTRY_ZSTD 0x8000u

/* Larger parts are not expanded just to be looked at. */
#define EXPANDED_MAX (64u << 20)

struct entry {
    uint16_t kind;
    uint32_t header_size;
    uint32_t compressed_size;
    uint32_t sm;
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
    memcpy(&ret_entry->sm, bytes + 28, 4);
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

static struct image_part part_of(const struct entry *entry, const void *bytes, size_t size)
{
    return (struct image_part){
        .kind = (enum image_part_kind)entry->kind, .sm = entry->sm, .bytes = bytes, .size = size};
}

static bool is_wanted(const struct image_visit *visit, const struct entry *entry)
{
    const struct image_part part = part_of(entry, NULL, 0);

    return !visit->wants || visit->wants(visit->context, &part);
}

static bool test_part(const struct image_visit *visit, const struct entry *entry, const void *bytes,
                      size_t size)
{
    const struct image_part part = part_of(entry, bytes, size);

    return visit->test(visit->context, &part);
}

static bool test_compressed(const struct entry *entry, const unsigned char *payload,
                            const struct image_visit *visit)
{
    if (entry->compressed_size > entry->payload_size || entry->plain_size > EXPANDED_MAX ||
        entry->compressed_size > EXPANDED_MAX)
        return true;
    _cleanup_free_ char *text = malloc(entry->plain_size + 1);
    long size = text ? expand(entry, payload, text, entry->plain_size) : -1;
    return size < 0 || test_part(visit, entry, text, (size_t)size);
}

static bool test_entry(const struct entry *entry, const unsigned char *payload,
                       const struct image_visit *visit)
{
    if (entry->kind != IMAGE_PTX && entry->kind != IMAGE_ELF)
        return true;
    if (!is_wanted(visit, entry))
        return false;
    if (entry->flags & (ENTRY_LZ4 | ENTRY_ZSTD))
        return test_compressed(entry, payload, visit);
    return test_part(visit, entry, payload, entry->payload_size);
}

static bool test_container(const unsigned char *bytes, const struct image_visit *visit)
{
    uint16_t header_size;
    uint64_t left;

    memcpy(&header_size, bytes + 6, sizeof(header_size));
    memcpy(&left, bytes + 8, sizeof(left));
    for (bytes += header_size; left;) {
        struct entry entry;
        read_entry(bytes, &entry);
        if (test_entry(&entry, bytes + entry.header_size, visit))
            return true;
        bytes += entry.header_size + entry.payload_size;
        left -= entry.header_size + entry.payload_size;
    }
    return false;
}

static bool test_containers(const unsigned char *bytes, size_t size,
                            const struct image_visit *visit)
{
    for (size_t extent; size; bytes += extent, size -= extent) {
        if (test_container(bytes, visit))
            return true;
        extent = image_container_extent(bytes, size);
    }
    return false;
}

bool image_any_part(const void *bytes, size_t size, const struct image_visit *visit)
{
    struct entry whole = {.kind = IMAGE_ELF};
    uint32_t magic;

    memcpy(&magic, bytes, sizeof(magic));
    if (magic == IMAGE_CONTAINER_MAGIC)
        return test_containers(bytes, size, visit);
    if (memcmp(bytes, ELFMAG, SELFMAG))
        whole.kind = IMAGE_PTX;
    return is_wanted(visit, &whole) && test_part(visit, &whole, bytes, size);
}
