/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expands an entry's payload into NUL-terminated text. What an entry says of its own size is a
 * claim: memory is bounded by it and by FATBIN_PTX_LIMIT, and the decoder has the last word.
 */
#include "fatbin.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* LZ4 cannot expand a byte to more than this many. */
#define LZ4_LARGEST_RATIO 255u

static int expand_zstd(const struct fatbin_entry *entry, struct fatbin_part *ret_part)
{
    char *text = malloc(entry->plain_size + 1);

    if (!text)
        return -ENOMEM;

    size_t size = ZSTD_decompress(text, entry->plain_size, entry->payload, entry->stored_size);

    if (ZSTD_isError(size)) {
        free(text);
        return -EINVAL;
    }
    *ret_part = (struct fatbin_part){text, size};
    return 0;
}

static int expand_lz4_into(const struct fatbin_entry *entry, size_t capacity,
                           struct fatbin_part *ret_part)
{
    char *text = malloc(capacity + 1);

    if (!text)
        return -ENOMEM;

    int size =
        LZ4_decompress_safe((const char *)entry->payload, text, entry->stored_size, capacity);

    if (size < 0) {
        free(text);
        return -EINVAL;
    }
    *ret_part = (struct fatbin_part){text, size};
    return 0;
}

/* Old compilers understate the plain size, so a failure is tried again with all the room there can
 * be. */
static int expand_lz4(const struct fatbin_entry *entry, struct fatbin_part *ret_part)
{
    uint64_t largest = (uint64_t)entry->stored_size * LZ4_LARGEST_RATIO;

    if (entry->stored_size > FATBIN_PTX_LIMIT)
        return -EINVAL;
    if (largest > FATBIN_PTX_LIMIT)
        largest = FATBIN_PTX_LIMIT;

    size_t claimed = entry->plain_size < largest ? entry->plain_size : largest;
    int error = expand_lz4_into(entry, claimed, ret_part);

    return error == -EINVAL ? expand_lz4_into(entry, largest, ret_part) : error;
}

static int copy_plain(const struct fatbin_entry *entry, struct fatbin_part *ret_part)
{
    if (entry->stored_size > FATBIN_PTX_LIMIT)
        return -EINVAL;

    char *text = malloc(entry->stored_size + 1);

    if (!text)
        return -ENOMEM;
    memcpy(text, entry->payload, entry->stored_size);
    *ret_part = (struct fatbin_part){text, entry->stored_size};
    return 0;
}

int fatbin_expand(const struct fatbin_entry *entry, struct fatbin_part *ret_part)
{
    struct fatbin_part part;
    int error;

    if (entry->flags & FATBIN_ZSTD)
        error = expand_zstd(entry, &part);
    else if (entry->flags & FATBIN_LZ4)
        error = expand_lz4(entry, &part);
    else
        error = copy_plain(entry, &part);
    if (error)
        return error;

    part.size = strnlen(part.text, part.size);
    part.text[part.size] = '\0';
    *ret_part = part;
    return 0;
}
