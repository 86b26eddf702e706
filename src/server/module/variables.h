/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the variables of a loaded library, and restores their values. So the library can serve
 * another client, which sees no data of the first.
 */
#pragma once

#include "image_names.h"
#include "loader.h"

/* Bytes of variables of one library. A library with more is not kept. */
#define VARIABLES_BYTES_MAX (32ull << 20)

struct gate;

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

/* Finds all variables and copies their values. The driver loads the library's code, if necessary.
 * Called between gate_close() and gate_open(), in the device's context. After the driver's
 * error, or CUDA_ERROR_OUT_OF_MEMORY beyond VARIABLES_BYTES_MAX, nothing is recorded. */
CUresult variables_remember(struct variables *variables, CUlibrary library);

/* Sets all variables to the values after the load. No kernel of the library runs, and the device's
 * context is current. After an error they may have any value. */
CUresult variables_restore(const struct variables *variables, struct gate *gate);

/* Frees the recorded values and the names. */
void variables_fini(struct variables *variables);
