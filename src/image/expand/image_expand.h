/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompresses the contents of a container's entry. The size in the entry is a claim: it and the
 * caller's limit bound the memory, and the decoder decides. The function holds no state and takes
 * no lock.
 */
#pragma once

#include <stddef.h>

#include "image_container.h"

/*
 * Copies or decompresses the payload into memory that the caller frees. A NUL, which `*ret_size`
 * does not count, ends it. Returns 0 or -ENOMEM. -EINVAL: the payload does not decompress,
 * contradicts its header, or would exceed `limit` bytes, which is below 2 GiB.
 */
int image_expand(const struct image_entry *entry, size_t limit, char **ret_bytes, size_t *ret_size);
