/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies: a box of bytes from one place to another, in a stream.
 */
#pragma once

#include "cuda_box.h"
#include "soft.h"
#include "soft_box.h"

enum box_place {
    PLACE_HOST,    /* the program's own memory, page-locked or not */
    PLACE_DEVICE,  /* must be known to the driver */
    PLACE_UNIFIED, /* whatever the address is */
    PLACE_ARRAY,
};

/* The part of an array, where the place is one. */
struct array_part {
    CUarray array;
    uint64_t at[3]; /* bytes, rows, slices or layers */
};

struct copy_request {
    struct box box;
    enum box_place to, from;
    struct array_part to_part, from_part;
    CUstream stream;
    bool async;
};

/* Checks and executes a copy; the caller has made the box from its arguments. Takes soft_lock, and
 * unlocks it while it waits. CUDA_ERROR_INVALID_VALUE for memory that the driver does not know;
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult copy_submit(const struct copy_request *request);
/* The request that a structure of CUDA's means; stream and async are left alone. */
CUresult copy_request_fill(const struct cuda_box *box, struct copy_request *request);
/* Fills a request and submits it. `sync`: waits for the copy, as CUDA's synchronous calls do. */
CUresult copy_described(const struct cuda_box *box, CUstream stream, bool sync);
/* Copies at once, as memmove does, row by row; nothing is checked, and no lock is needed. */
void box_copy(const struct box *box);
