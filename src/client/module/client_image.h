/* SPDX-License-Identifier: Apache-2.0 */
/* Images: what the program handed over as code. */
#pragma once

#include "jit_options.h"

/* The bytes, in a sealed memfd that can be sent again for another device. */
struct image {
    int fd;
    uint64_t size;
    uint64_t number;       /* the server's, which has lent the memfd; 0 = it is our own */
    const void *wrapper;   /* the program's, for as long as inputs may be taken from it */
    struct image *inputs;  /* what it was linked from, once a driver has wanted that; or NULL */
    uint32_t options_size; /* pairs of u64: the numeric JIT options */
    unsigned char options[512];
};

CUresult image_init(struct image *image, const void *code, const struct jit_options *options);
void image_fini(struct image *image);

/* What separately compiled code was linked from, for a driver that has no use for the image. It is
 * gathered when it is first asked for. NULL when there is nothing. One caller at a time. */
struct image *image_inputs(struct image *image);

/* The program's code may be gone from now on. */
void image_keep_inputs(struct image *image);

/* Another server has none of its images. */
void image_forget_server(struct image *image);

/* Another one of the same bytes. */
CUresult image_copy(const struct image *image, struct image *ret_image);

/* For cuModuleLoad and cuLibraryLoadFromFile: the whole file, NUL behind it. */
CUresult image_read_file(const char *path, void **ret_bytes);
