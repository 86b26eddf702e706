/* SPDX-License-Identifier: Apache-2.0 */
/* Reads headers with memcpy, after their bounds have been checked. */
#include "image_container.h"

#include <errno.h>
#include <string.h>

/* Reads no byte beyond the first difference. */
static bool begins_with(const void *bytes, uint32_t magic)
{
    return strncmp(bytes, (const char *)&magic, sizeof(magic)) == 0;
}

bool image_is_container(const void *bytes)
{
    return begins_with(bytes, IMAGE_CONTAINER_MAGIC);
}

bool image_is_wrapper(const void *bytes)
{
    return begins_with(bytes, IMAGE_WRAPPER_MAGIC);
}

int image_entries_open(struct image_entries *entries, const void *bytes, size_t size)
{
    struct image_container header;

    if (size < sizeof(header))
        return -EINVAL;
    memcpy(&header, bytes, sizeof(header));
    if (header.magic != IMAGE_CONTAINER_MAGIC || header.header_size < sizeof(header) ||
        header.header_size > size || header.size > size - header.header_size)
        return -EINVAL;
    entries->next = (const unsigned char *)bytes + header.header_size;
    entries->end = entries->next + header.size;
    return 0;
}

static struct image_entry entry_of(const struct image_entry_header *header, const void *payload)
{
    return (struct image_entry){
        .kind = header->kind,
        .sm = header->sm,
        .version_major = header->version_major,
        .version_minor = header->version_minor,
        .flags = header->flags,
        .payload = payload,
        .payload_size = header->payload_size,
        .compressed_size = header->compressed_size,
        .plain_size = header->plain_size,
    };
}

int image_entries_next(struct image_entries *entries, struct image_entry *ret_entry)
{
    struct image_entry_header header;
    size_t left = (size_t)(entries->end - entries->next);

    if (left == 0)
        return 0;
    if (left < sizeof(header))
        return -EINVAL;
    memcpy(&header, entries->next, sizeof(header));
    if (header.header_size < sizeof(header) || header.header_size > left ||
        header.payload_size > left - header.header_size)
        return -EINVAL;
    *ret_entry = entry_of(&header, entries->next + header.header_size);
    entries->next += header.header_size + header.payload_size;
    return 1;
}

bool image_entry_is_compressed(const struct image_entry *entry)
{
    return entry->flags & (IMAGE_LZ4 | IMAGE_ZSTD);
}

bool image_container_size(const void *container, size_t *ret_size)
{
    struct image_container header;

    if (!image_is_container(container))
        return false;
    memcpy(&header, container, sizeof(header));
    if (header.header_size < sizeof(header) || header.size > IMAGE_SIZE_MAX)
        return false;
    *ret_size = header.header_size + (size_t)header.size;
    return true;
}
