/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of an entry of a container, decompressed. What an entry says of its own size is a
 * claim: memory is bounded by it and by the caller's limit, and the decoder has the last word. The
 * function holds no state and takes no lock.
 */
#pragma once

#include <stddef.h>

#include "image_container.h"

/*
 * Copies or decompresses the payload into memory for the caller to free, and ends it with a NUL
 * that
 * `*ret_size` does not count. 0; -ENOMEM; -EINVAL when the payload does not decompress, contradicts
 * its header, or would be larger than `limit` bytes, which is below 2 GiB.
 */
int image_expand(const struct image_entry *entry, size_t limit, char **ret_bytes, size_t *ret_size);
