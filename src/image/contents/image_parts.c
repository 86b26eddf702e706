/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the parts of images. Their headers are sound; the claims of compressed parts are not
 * checked yet.
 */
#include "image_parts.h"

#include "cleanup.h"
#include "image_bundle.h"
#include "image_container.h"
#include "image_elf.h"
#include "image_expand.h"

/* Larger parts are not expanded for an inspection. The largest that is known is cuBLASLt's code for
 * compute capability 9.0, of 160 MiB (CUDA 12.4). */
#define EXPANDED_MAX (256u << 20)

static struct image_part part_of(const struct image_entry *entry, const void *bytes, size_t size)
{
    return (struct image_part){.kind = (enum image_kind)entry->kind,
                               .sm = entry->sm,
                               .is_specific = entry->flags & IMAGE_ARCH_SPECIFIC,
                               .is_of_family = entry->flags & IMAGE_FAMILY_SPECIFIC,
                               .bytes = bytes,
                               .size = size};
}

static bool is_wanted(const struct image_visit *visit, const struct image_entry *entry)
{
    const struct image_part part = part_of(entry, NULL, 0);

    return !visit->wants || visit->wants(visit->context, &part);
}

static bool test_part(const struct image_visit *visit, const struct image_entry *entry,
                      const void *bytes, size_t size)
{
    const struct image_part part = part_of(entry, bytes, size);

    return visit->test(visit->context, &part);
}

static bool test_compressed(const struct image_visit *visit, const struct image_entry *entry)
{
    _cleanup_free_ char *bytes = NULL;
    size_t size;

    return image_expand(entry, EXPANDED_MAX, &bytes, &size) < 0 ||
           test_part(visit, entry, bytes, size);
}

static bool test_entry(const struct image_visit *visit, const struct image_entry *entry)
{
    if (entry->kind != IMAGE_PTX && entry->kind != IMAGE_ELF)
        return true;
    if (!is_wanted(visit, entry))
        return false;
    if (image_entry_is_compressed(entry))
        return test_compressed(visit, entry);
    return test_part(visit, entry, entry->payload, entry->payload_size);
}

static bool test_container(const struct image_visit *visit, const void *bytes, size_t size)
{
    struct image_entries entries;
    struct image_entry entry;

    if (image_entries_open(&entries, bytes, size) < 0)
        return true;
    while (image_entries_next(&entries, &entry) > 0) {
        if (test_entry(visit, &entry))
            return true;
    }
    return false;
}

static bool test_containers(const struct image_visit *visit, const unsigned char *bytes,
                            size_t size)
{
    for (size_t extent; size; bytes += extent, size -= extent) {
        if (test_container(visit, bytes, size))
            return true;
        extent = image_container_extent(bytes, size);
    }
    return false;
}

bool image_any_part(const void *bytes, size_t size, const struct image_visit *visit)
{
    const struct image_entry whole = {.kind = image_is_elf(bytes) ? IMAGE_ELF : IMAGE_PTX};

    if (image_is_container(bytes))
        return test_containers(visit, bytes, size);
    return is_wanted(visit, &whole) && test_part(visit, &whole, bytes, size);
}
