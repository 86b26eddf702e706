/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of a checkpoint's memory in their order. The file "chunk-list" has a line for each,
 * with the chunk's name, or "0" for one that is all zero. Errors are -errno. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "chunk_file.h"

struct chunk_list {
    char *text;
    size_t size;
    FILE *out; /* while it grows */
};

/* 0 or -ENOMEM. chunk_list_fini() ends it in any case. */
int chunk_list_begin(struct chunk_list *list);
void chunk_list_add(struct chunk_list *list, const char *name);
void chunk_list_fini(struct chunk_list *list);

/* Writes it under a temporary name, waits until it is on its disk, and gives it its name. */
int chunk_list_write(struct chunk_list *list, int directory, uint64_t *ret_checksum);

/* -EBADMSG: it is not as it was written. */
int chunk_list_read(int directory, uint64_t checksum, struct chunk_list *ret_list);

/* The line at `*next`, which begins as the text: 0; -ENOENT behind the last; -EBADMSG. */
int chunk_list_next(const char **next, char ret_name[CHUNK_NAME]);
