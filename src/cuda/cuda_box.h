/* SPDX-License-Identifier: Apache-2.0 */
/* What the structures of CUDA's copies in two and three dimensions say, in one form. Widths, `x`
 * and pitches are bytes. The functions are pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

struct cuda_box_side {
    CUmemorytype type;
    const void *host;   /* meant where type is CU_MEMORYTYPE_HOST */
    CUdeviceptr device; /* meant where it is any other but ARRAY */
    CUarray array;
    size_t x, y, z;
    size_t pitch, height; /* of a row in bytes, of a slice in rows; 0 = as the box needs */
};

struct cuda_box {
    struct cuda_box_side dst, src;
    size_t width, height, depth;
};

struct cuda_box cuda_box_of_2d(const CUDA_MEMCPY2D *copy);
struct cuda_box cuda_box_of_3d(const CUDA_MEMCPY3D *copy);
struct cuda_box cuda_box_of_3d_peer(const CUDA_MEMCPY3D_PEER *copy);

/* A side that is memory: its base, how far from there the box begins, and from row to row and from
 * slice to slice. */
struct cuda_box_rows {
    uint64_t base, offset;
    uint64_t pitch, height;
};

/* False for boxes that CUDA refuses: an unknown kind of memory, overlapping rows or slices. */
bool cuda_box_rows_of(const struct cuda_box_side *side, const struct cuda_box *box,
                      struct cuda_box_rows *ret_rows);

/* Copies a box on a stream; `sync` adds the guarantees of CUDA's synchronous calls. */
typedef CUresult (*cuda_box_copier)(const struct cuda_box *box, CUstream stream, bool sync);

/* What the calls of the cuMemcpy2D, cuMemcpy3D and cuMemcpy3DPeer families have in common: they
 * have `copier` copy what the structure describes. CUDA_ERROR_INVALID_VALUE for NULL and for
 * reserved members that are set, or what `copier` returns. */
CUresult cuda_copy_2d(cuda_box_copier copier, const CUDA_MEMCPY2D *copy, CUstream stream,
                      bool sync);
CUresult cuda_copy_3d(cuda_box_copier copier, const CUDA_MEMCPY3D *copy, CUstream stream,
                      bool sync);
CUresult cuda_copy_3d_peer(cuda_box_copier copier, const CUDA_MEMCPY3D_PEER *copy, CUstream stream,
                           bool sync);
