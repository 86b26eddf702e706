/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries of the driver, each made from a module image. They are loaded by cuLibraryLoadData,
 * without stalling a client; cuModuleLoadData would stall every client until the GPU is idle.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "compiled_image.h"
#include "image_names.h"
#include "jit_pairs.h"
#include "list.h"
#include "loader.h"
#include "print_formats.h"

#define LIBRARY_LOG_SIZE 4096u

struct device;
struct image_wrapper;
struct session;
struct stored_image;

struct library {
    CUlibrary driver;
    atomic_uint users;             /* one for each device on which a client uses it */
    struct list link;              /* while in the unload queue (unload_queue.h) */
    uint64_t bytes;                /* while there: of its image and variables */
    bool may_print;                /* its kernels may print in `formats` */
    struct print_formats *formats; /* NULL: unknown */
    bool has_callers; /* `callers` are all kernels that print or allocate: image_callers.h */
    struct image_names callers;
    bool may_allocate; /* its kernels may keep memory of the device's own heap */
    bool has_pointers; /* its code may call functions through pointers */
    unsigned option_count;
    /* The driver may compile long after the load, and writes to the buffers of that time. So
     * options and log live as long as the library. */
    CUjit_option options[JIT_PAIRS_MAX + 2];
    void *values[JIT_PAIRS_MAX + 2];
    char log[LIBRARY_LOG_SIZE];
    /* The driver reads the code in place. A copy would take most of the time of a large load. So
     * the code lives as long as the library. */
    struct stored_image *image;
    struct compiled_image code;
    struct image_wrapper *wrapper; /* NULL = the code is no bundle */
};

/* Creates a library from a checked image, with a reference to it. It is not loaded yet, and counts
 * as printing and allocating. The options are pairs of u64, option and value, as a client sends
 * them; options that the server does not pass are skipped. NULL when out of memory. */
struct library *library_create(struct stored_image *image, const void *options,
                               uint32_t options_size);

/* Loads `code`, which the caller made from the image. The driver allocates no device memory yet.
 * The device's context is current. Returns the driver's result. */
CUresult library_load(struct library *library);

/* Has the driver compile loaded PTX now, so that errors are reported, and allocate its variables.
 * On the session's thread, in the device's context. It waits for an idle point (exclusive.h),
 * unless `session` is NULL because no client is busy. Returns the driver's result; `log` has the
 * compiler's messages. */
CUresult library_compile(const struct library *library, struct session *session,
                         const struct device *device);

/* Adds a use; the caller has one. */
struct library *library_use(struct library *library);

/* Drops a use: true when that was the last one; then the caller destroys the library. */
bool library_put(struct library *library);

/* Unloads and frees it. The driver waits until all streams are idle, and blocks other threads
 * meanwhile. So the call stands between gate_close() and gate_open(), unless the server ends.
 * NULL is allowed. */
void library_destroy(struct library *library);
