/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of a loaded library: what they were when it was loaded, and how they become that
 * again. So a library whose client is gone can serve another, which sees nothing of the first.
 */
#pragma once

#include "image_names.h"
#include "loader.h"

/* Bytes of variables of one library; with more, it is not kept. */
#define VARIABLES_BYTES_MAX (32ull << 20)

struct quiesce;

struct variable {
    CUdeviceptr address;
    size_t size;
    void *initial; /* NULL: zeros */
};

struct variables {
    struct image_names names;
    struct variable *each; /* as many; NULL until they are remembered */
    uint64_t bytes;
};

/* Finds all variables and copies what they are now. Loads the library's code, if that is still to
 * be done. Called between quiesce_begin() and quiesce_end(). On failure nothing is remembered. The
 * device's context is current here and below. */
CUresult variables_remember(struct variables *variables, CUlibrary library);

/* No kernel of the library runs. After a failure they may be anything. */
CUresult variables_restore(const struct variables *variables, struct quiesce *quiesce);

void variables_fini(struct variables *variables);
