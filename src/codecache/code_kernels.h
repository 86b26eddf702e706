/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of an entry that clients have looked up, and the devices on which they did. The file
 * is small, and is rewritten whenever one is added.
 */
#pragma once

#include "code_entry.h"

#define CODE_NAMES_MAX (1u << 20)

struct code_kernels {
    uint64_t devices;    /* bit d: device d has loaded the image */
    uint32_t count;      /* of names */
    uint32_t names_size; /* bytes, at most CODE_NAMES_MAX */
    char *names;         /* one behind the other, each with its NUL; the owner frees them */
};

/* Writes them: 0 or -errno. */
int code_kernels_save(const struct code_directory *directory, const char *name,
                      const struct code_kernels *kernels);

/* Reads them: 0; -ENOENT; -EBADMSG or -EBADF when they were not valid and have been deleted. */
int code_kernels_load(const struct code_directory *directory, const char *name,
                      struct code_kernels *ret_kernels);

/* Adds the devices and names of `other` that are not in `kernels`: 0, -ENOMEM, or -EFBIG. */
int code_kernels_merge(struct code_kernels *kernels, const struct code_kernels *other);
