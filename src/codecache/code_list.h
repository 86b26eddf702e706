/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the code cache, and the eviction of the least recently used. */
#pragma once

#include "code_entry.h"

struct code_listed {
    char name[CODE_NAME_SIZE];
    uint64_t bytes; /* of its files */
    int64_t used;   /* seconds since the epoch */
};

struct code_list {
    struct code_listed *entries; /* the one that was used last is the first */
    unsigned count;
    uint64_t bytes; /* of all entries */
};

/* Reads the list, which code_list_fini() frees: 0 or -errno. Temporary files of writers that were
 * killed are deleted after an hour. */
int code_list_read(const struct code_directory *directory, struct code_list *ret_list);
void code_list_fini(struct code_list *list);

/* Deletes the least recently used entries until `bytes` more fit below the limit: 0; -EFBIG when
 * `bytes` exceeds the limit; -errno. */
int code_list_evict(const struct code_directory *directory, uint64_t bytes);
