/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the module cache and the code cache on disk: what a later server would have to know of
 * the libraries that clients use, and loading them again. Only libraries that the module cache
 * keeps for other clients are kept on disk.
 */
#pragma once

#include "code_kernels.h"
#include "module_cache.h"

/* A library that clients use, of which the disk does not know all kernels. */
struct unsaved_library {
    struct stored_image *image;
    uint32_t options_size;
    unsigned char options[CODE_OPTIONS_MAX];
    unsigned compute_capability; /* 10 * major + minor */
    struct code_kernels kernels;
};

/* From any thread. The next such library, which counts as saved from now on: false when there is
 * none. */
bool module_cache_next_unsaved(struct module_cache *cache, struct unsaved_library *ret_library);
void unsaved_library_fini(struct unsaved_library *library);

/* Asked before each step: whether a client is at work, so that it would have to wait. */
struct preload_guard {
    bool (*is_busy)(void *context);
    void *context;
};

/* Loads the library of an entry with its kernels for clients to come. On a thread of its own, while
 * no client is busy; when one is, the remaining kernels are left out. The device's context is
 * current. CUDA_SUCCESS as well when the library is there already; else what the driver says,
 * CUDA_ERROR_INVALID_IMAGE, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult module_cache_preload(struct module_cache *cache, const struct device *device,
                              const struct code_entry *entry, const struct code_kernels *kernels,
                              const struct preload_guard *guard);

/* How many libraries of the code cache clients have asked for. */
unsigned module_cache_preloads_used(struct module_cache *cache);
