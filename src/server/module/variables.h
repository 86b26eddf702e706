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

/* Copies what the load has made of a recorded variable to other memory of the same size, with the
 * device's context current. The driver's result. */
CUresult variable_copy_initial(const struct variable *variable, CUdeviceptr to, struct gate *gate);

/* The contents that a variable gets, or a buffer of its size for those that it has. */
struct variable_copy {
    const struct variable *variable;
    void *bytes;
};

/* Copies the contents of variables to the host, or back. The variables are recorded, and all of one
 * device, whose context is current; no kernel that uses them runs. The driver's result. */
CUresult variables_read(const struct variable_copy *copies, uint32_t count, struct gate *gate);
CUresult variables_write(const struct variable_copy *copies, uint32_t count, struct gate *gate);

/* Whether these are the contents that the load has given the variable. */
bool variable_is_initial(const struct variable *variable, const void *bytes);

/* Whether the load has written addresses into a recorded variable. */
bool variable_is_relocated(const struct variables *variables, const struct variable *variable);

/* The recorded variable of that name, or NULL. */
const struct variable *variables_find(const struct variables *variables, const char *name);

/* Frees the recorded values and the names. */
void variables_fini(struct variables *variables);
