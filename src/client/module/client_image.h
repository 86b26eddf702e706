/* SPDX-License-Identifier: Apache-2.0 */
/* Images: code that the program has handed over. */
#pragma once

#include <stdbool.h>

#include "jit_options.h"

/* The bytes, in a sealed memfd that can be sent again for another device. */
struct image {
    int fd;
    uint64_t size;
    uint64_t number;       /* the server's number of the shared memfd; 0 = the memfd is our own */
    const void *wrapper;   /* the program's, for as long as inputs may be taken from it */
    struct image *inputs;  /* the inputs of its linker, once a driver has asked for them; or NULL */
    uint32_t options_size; /* pairs of u64: the numeric JIT options */
    unsigned char options[512];
};

/* Keeps a copy of the program's code, or borrows the server's file of the same bytes; waits for the
 * server. `options` may be NULL. CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_VALUE for NULL,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult image_init(struct image *image, const void *code, const struct jit_options *options);

/* Closes the file; the structure stays the caller's. */
void image_fini(struct image *image);

/* What separately compiled code was linked from, for a driver that cannot use the image itself. It
 * is gathered at the first call, and belongs to the image. NULL when there is nothing. One thread
 * at a time. */
struct image *image_inputs(struct image *image);

/* Gathers the inputs now: the program may free its code from here on. */
void image_keep_inputs(struct image *image);

/* Whether a device of compute capability `sm` may run the image itself, as image_suits(). */
bool image_may_run(const struct image *image, unsigned sm);

/* Forgets the server's numbers for the image: another server has none of it. */
void image_forget_server(struct image *image);

/* Another image of the same bytes, without inputs. CUDA_ERROR_OUT_OF_MEMORY when there is no
 * descriptor. */
CUresult image_copy(const struct image *image, struct image *ret_image);

/* Reads a whole file for cuModuleLoad and cuLibraryLoadFromFile, with a NUL behind it, for the
 * caller to free. The size, for which `ret_size` may be NULL, is without it.
 * CUDA_ERROR_FILE_NOT_FOUND, CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult image_read_file(const char *path, void **ret_bytes, size_t *ret_size);
