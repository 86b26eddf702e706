/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load of an image: PTX is compiled in another process, the driver loads the library, and a
 * further process reads the image meanwhile. Failures are reported to the client, or to the log.
 */
#pragma once

#include "session.h"

struct cached;
struct image_facts;
struct module_cache;
struct stored_image;

/* A request to load an image. */
struct image_request {
    struct session *session; /* its thread loads the image; NULL: no client is busy */
    const struct device *device;
    struct stored_image *image;
    const void *options;
    uint32_t options_size;
    uint64_t *charged; /* the session's charge for variables; NULL: none */
};

/* A buffer for the compiler's messages; `size` is their size. */
struct image_log {
    char *text;
    uint32_t capacity, size;
};

/* Loads the library of an entry that is not in use yet, in the device's context. `ret_facts` is
 * what the image has, or what must be assumed of it; image_facts_fini() in any case. The result is
 * that of module_cache_get(). */
CUresult image_load(const struct module_cache *cache, struct cached *cached,
                    const struct image_request *request, struct image_log *ret_log,
                    struct image_facts *ret_facts);

/* Charges the request's session for variables, where it has a charge. */
CUresult image_load_charge(const struct image_request *request, uint64_t bytes);

/* Charges the session for variables of a library on a device. With IMAGE_BYTES_UNKNOWN it charges
 * the whole limit of the client. CUDA_ERROR_OUT_OF_MEMORY beyond the limit. */
CUresult variables_charge(struct session *session, const struct device *device, uint64_t bytes,
                          uint64_t *ret_charged);
