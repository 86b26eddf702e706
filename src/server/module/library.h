/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: what the driver makes of a module image. They are loaded by cuLibraryLoadData, which
 * stalls no client; cuModuleLoadData stalls every client until the GPU is idle.
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
    struct list link;              /* while retired (unload_queue.h) */
    uint64_t bytes;                /* while retired: of its image and variables */
    bool may_print;                /* its kernels may print, in these formats: */
    struct print_formats *formats; /* NULL: unknown */
    bool has_callers;              /* and these are all that do either: image_callers.h */
    struct image_names callers;
    bool may_allocate; /* its kernels may keep memory of the device's own heap */
    unsigned option_count;
    /* The driver may compile long after the load, and then still writes to the buffers that it was
     * given there. So options and log live as long as the library. */
    CUjit_option options[JIT_PAIRS_MAX + 2];
    void *values[JIT_PAIRS_MAX + 2];
    char log[LIBRARY_LOG_SIZE];
    /* The driver reads the code where it is and makes no copy, which takes most of the time of a
     * large load. So all of it lives as long as the library. */
    struct stored_image *image;
    struct compiled_image code;
    struct image_wrapper *wrapper; /* NULL = the code is no bundle */
};

/* A library of an image that has been checked, of which it takes a reference. It is not loaded yet,
 * and may print and allocate. The options are pairs of u64, option and value, as a client sends
 * them; options that the server does not pass are left out. NULL when out of memory. */
struct library *library_create(struct stored_image *image, const void *options,
                               uint32_t options_size);

/* Loads `code`, which the caller has made of the image. The driver takes no memory of a device for
 * it yet. The device's context is current. What the driver says. */
CUresult library_load(struct library *library);

/* Compiles PTX that has been loaded at once, so that errors are reported now, and the driver takes
 * memory for its variables. On the session's thread, and the device's context is current. PTX waits
 * for a calm moment (calm.h), unless `session` is NULL because no client is busy. What the driver
 * says; messages of the compiler are in `log`. */
CUresult library_compile(const struct library *library, struct session *session,
                         const struct device *device);

/* Another use of a library that the caller uses. */
struct library *library_use(struct library *library);

/* Gives up a use: true when that was the last one, and then the caller has to destroy the
 * library. */
bool library_put(struct library *library);

/* Unloads and frees it. The call waits until all streams are idle, and no other thread gets into
 * the driver meanwhile, so it stands between quiesce_begin() and quiesce_end() unless the server
 * ends. NULL is allowed. */
void library_destroy(struct library *library);
