/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of the module cache. Only the cache's own files include this. The cache's lock guards
 * members, or their user does.
 */
#pragma once

#include <stdatomic.h>

#include "module_cache.h"
#include "variables.h"

enum sharing {
    FOR_ONE, /* for the client that has loaded it */
    IN_TURN, /* for one client at a time: it has variables */
    FOR_ALL,
};

struct cached {
    struct list link; /* in the cache, or in a client's list of parked libraries */
    struct library *library;
    const struct device *device;
    enum sharing sharing;
    bool loading;
    atomic_bool is_loaded;      /* into the context: a kernel or a variable has been looked up */
    bool has_state;             /* a variable that its kernels may write */
    uint64_t variable_bytes;    /* of its variables on the device, or IMAGE_BYTES_UNKNOWN */
    struct variables variables; /* IN_TURN */
    unsigned users;
    uint64_t size;
    struct stored_image *image; /* NULL = not needed any more: FOR_ONE */
    bool is_preloaded;          /* from the code cache, and no client has asked for it yet */
    uint32_t saved_kernels;     /* so many of its kernels are in the code cache */
    uint32_t options_size;
    struct kernel_table kernels;
    unsigned char options[];
};
