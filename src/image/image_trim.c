/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are copied unchanged. Their lengths are multiples of 8, so that the next entry keeps its
 * alignment. A container with another length is not trimmed. */
#include "image_trim.h"

#include <stdlib.h>
#include <string.h>

#include "image_container.h"

#define ALIGNMENT 8u

static bool runs_on(const struct image_entry *entry, unsigned sm)
{
    if (entry->flags & IMAGE_ARCH_SPECIFIC)
        return entry->sm == sm;
    if (entry->kind == IMAGE_ELF || (entry->flags & IMAGE_FAMILY_SPECIFIC))
        return entry->sm <= sm && entry->sm / 10 == sm / 10;
    return entry->sm <= sm;
}

static bool is_code(const struct image_entry *entry)
{
    return (entry->kind == IMAGE_PTX || entry->kind == IMAGE_ELF) && entry->sm;
}

/* The newest architecture among the entries of this kind that the device runs; 0 = none. */
static unsigned newest(struct image_entries entries, unsigned kind, unsigned sm)
{
    struct image_entry entry;
    unsigned found = 0;

    while (image_entries_next(&entries, &entry) > 0)
        if (entry.kind == kind && runs_on(&entry, sm) && entry.sm > found)
            found = entry.sm;
    return found;
}

static bool is_needed(const struct image_entries *all, const struct image_entry *entry,
                      const unsigned *sms, unsigned count)
{
    if (!is_code(entry))
        return true;
    for (unsigned i = 0; i < count; i++)
        if (runs_on(entry, sms[i]) && entry->sm == newest(*all, entry->kind, sms[i]))
            return true;
    return false;
}

/* Copies the needed entries to `to`, or only counts their bytes when that is NULL. False when the
 * entries are not sound, or not aligned. */
static bool copy_needed(const struct image_entries *all, const unsigned *sms, unsigned count,
                        char *to, size_t *ret_size)
{
    struct image_entries entries = *all;
    struct image_entry entry;
    int more;

    *ret_size = 0;
    for (const unsigned char *start = entries.next;
         (more = image_entries_next(&entries, &entry)) > 0; start = entries.next) {
        size_t length = (size_t)(entries.next - start);

        if (length % ALIGNMENT)
            return false;
        if (!is_needed(all, &entry, sms, count))
            continue;
        if (to)
            memcpy(to + *ret_size, start, length);
        *ret_size += length;
    }
    return more == 0;
}

bool image_trim(const void *container, size_t size, const unsigned *sms, unsigned count,
                void **ret_bytes, size_t *ret_size)
{
    struct image_entries entries;
    size_t needed;

    if (!image_is_container(container) || image_entries_open(&entries, container, size) ||
        !copy_needed(&entries, sms, count, NULL, &needed))
        return false;
    size_t head = (size_t)(entries.next - (const unsigned char *)container);
    if (!needed || needed == (size_t)(entries.end - entries.next))
        return false;
    char *bytes = malloc(head + needed);
    if (!bytes)
        return false;
    const uint64_t length = needed;
    memcpy(bytes, container, head);
    memcpy(bytes + offsetof(struct image_container, size), &length, sizeof(length));
    copy_needed(&entries, sms, count, bytes + head, &needed);
    *ret_bytes = bytes;
    *ret_size = head + needed;
    return true;
}
