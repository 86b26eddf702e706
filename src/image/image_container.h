/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fat binary containers, entry by entry. The functions read nothing outside the given size,
 * whatever the headers claim. The bytes may have any alignment. The functions hold no state and
 * take no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image_format.h"

/* One entry. The payload lies within the container. */
struct image_entry {
    unsigned kind; /* enum image_kind, or an unknown number */
    unsigned sm;   /* 75, 90, ...; 0 = unknown */
    unsigned version_major, version_minor;
    uint64_t flags;
    const void *payload;
    uint64_t payload_size; /* bytes, with padding */
    uint32_t compressed_size;
    uint64_t plain_size;
};

struct image_entries {
    const unsigned char *next, *end;
};

/* Whether bytes begin like a container, or like a wrapper. PTX may be shorter than the magic
 * number, if it ends with a NUL. */
bool image_is_container(const void *bytes);
bool image_is_wrapper(const void *bytes);

/* Begins a walk of the container at `bytes`: 0, or -EINVAL when its header is wrong or the entries
 * do not lie within `size` bytes. */
int image_entries_open(struct image_entries *entries, const void *bytes, size_t size);

/* 1 and the next entry; 0 at the end; -EINVAL when an entry does not lie within the container. */
int image_entries_next(struct image_entries *entries, struct image_entry *ret_entry);

bool image_entry_is_compressed(const struct image_entry *entry);

/* The size in bytes, with the header, of a container of unknown length: false when it is no
 * container, or larger than IMAGE_SIZE_MAX. Reads the 16 bytes of the header, if the first four are
 * a container's. */
bool image_container_size(const void *container, size_t *ret_size);
