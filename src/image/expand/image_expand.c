/* SPDX-License-Identifier: Apache-2.0 */
/* Each decoder gets the memory that the entry claims, up to the limit. */
#include "image_expand.h"

#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* LZ4 cannot expand a byte to more than this many. */
#define LZ4_LARGEST_RATIO 255u

typedef int decoder(const struct image_entry *entry, char *bytes, size_t capacity,
                    size_t *ret_size);

static int decode_zstd(const struct image_entry *entry, char *bytes, size_t capacity,
                       size_t *ret_size)
{
    *ret_size = ZSTD_decompress(bytes, capacity, entry->payload, entry->compressed_size);
    return ZSTD_isError(*ret_size) ? -EINVAL : 0;
}

static int decode_lz4(const struct image_entry *entry, char *bytes, size_t capacity,
                      size_t *ret_size)
{
    int size =
        LZ4_decompress_safe(entry->payload, bytes, (int)entry->compressed_size, (int)capacity);

    *ret_size = (size_t)size;
    return size < 0 ? -EINVAL : 0;
}

static int copy_plain(const struct image_entry *entry, char *bytes, size_t capacity,
                      size_t *ret_size)
{
    memcpy(bytes, entry->payload, capacity);
    *ret_size = capacity;
    return 0;
}

static int decode(decoder *decode_into, const struct image_entry *entry, size_t capacity,
                  char **ret_bytes, size_t *ret_size)
{
    char *bytes = malloc(capacity + 1);
    size_t size;

    if (!bytes)
        return -ENOMEM;
    if (decode_into(entry, bytes, capacity, &size)) {
        free(bytes);
        return -EINVAL;
    }
    bytes[size] = '\0';
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}

/* Old compilers understate the plain size. After a failure the decoder is tried again with the most
 * memory that the contents can need. */
static int expand_lz4(const struct image_entry *entry, size_t limit, char **ret_bytes,
                      size_t *ret_size)
{
    uint64_t largest = (uint64_t)entry->compressed_size * LZ4_LARGEST_RATIO;

    if (largest > limit)
        largest = limit;

    size_t claimed = entry->plain_size < largest ? entry->plain_size : largest;
    int error = decode(decode_lz4, entry, claimed, ret_bytes, ret_size);

    return error == -EINVAL ? decode(decode_lz4, entry, largest, ret_bytes, ret_size) : error;
}

static bool claims_are_possible(const struct image_entry *entry, size_t limit)
{
    if (!image_entry_is_compressed(entry))
        return entry->payload_size <= limit;
    return entry->compressed_size && entry->compressed_size <= entry->payload_size &&
           entry->compressed_size <= limit && entry->plain_size <= limit;
}

int image_expand(const struct image_entry *entry, size_t limit, char **ret_bytes, size_t *ret_size)
{
    if (!claims_are_possible(entry, limit))
        return -EINVAL;
    if (entry->flags & IMAGE_ZSTD)
        return decode(decode_zstd, entry, entry->plain_size, ret_bytes, ret_size);
    if (entry->flags & IMAGE_LZ4)
        return expand_lz4(entry, limit, ret_bytes, ret_size);
    return decode(copy_plain, entry, entry->payload_size, ret_bytes, ret_size);
}
