/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the entry headers of a container. */
#include "image_suits.h"

#include "image_container.h"

static bool entry_suits(const struct image_entry *entry, unsigned sm)
{
    if (!entry->sm)
        return true;
    if (entry->kind == IMAGE_PTX)
        return entry->sm <= sm;
    if (entry->kind == IMAGE_ELF)
        return entry->sm / 10 == sm / 10 && entry->sm <= sm;
    return true;
}

bool image_suits(const void *container, size_t size, unsigned sm)
{
    struct image_entries entries;
    struct image_entry entry;
    bool is_empty = true;

    if (!image_is_container(container) || image_entries_open(&entries, container, size) < 0)
        return true;
    while (image_entries_next(&entries, &entry) > 0) {
        if (entry_suits(&entry, sm))
            return true;
        is_empty = false;
    }
    return is_empty;
}
