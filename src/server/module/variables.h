/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of a loaded library: their values after the load, and how they get these again. So
 * a library whose client is gone can serve another client, which sees nothing of the first.
 */
#pragma once

#include "image_names.h"
#include "loader.h"

/* Bytes of variables of one library. A library with more is not kept. */
#define VARIABLES_BYTES_MAX (32ull << 20)

struct quiesce;

struct variable {
    CUdeviceptr address;
    size_t size;
    void *initial; /* NULL: zeros */
};

struct variables {
    struct image_names names;
    struct variable *each; /* one for each name; NULL until they are recorded */
    uint64_t bytes;
};

/* Finds all variables and copies their values. Loads the library's code, if that is not loaded yet.
 * Called between quiesce_begin() and quiesce_end(), in the device's context. What the driver says,
 * or CUDA_ERROR_OUT_OF_MEMORY beyond VARIABLES_BYTES_MAX; then nothing is recorded. */
CUresult variables_remember(struct variables *variables, CUlibrary library);

/* Sets all variables to the values after the load. No kernel of the library runs, and the device's
 * context is current. After an error they may have any value. */
CUresult variables_restore(const struct variables *variables, struct quiesce *quiesce);

/* Frees what was recorded, and the names. */
void variables_fini(struct variables *variables);
