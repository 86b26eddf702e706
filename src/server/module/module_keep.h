/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the module cache with the code cache on disk: finds the libraries to save for a later
 * server, and preloads them there. Only libraries that the module cache keeps for other clients are
 * saved.
 */
#pragma once

#include "code_kernels.h"
#include "module_cache.h"

/* A library in use, some of whose kernels are not on disk. */
struct unsaved_library {
    struct stored_image *image;
    uint32_t options_size;
    unsigned char options[CODE_OPTIONS_MAX];
    unsigned compute_capability; /* 10 * major + minor */
    struct code_kernels kernels;
};

/* From any thread. The next such library, which counts as saved from now on; false when there is
 * none. */
bool module_cache_next_unsaved(struct module_cache *cache, struct unsaved_library *ret_library);
void unsaved_library_fini(struct unsaved_library *library);

/* Called before each step: whether a client is at work, which the load would stall. */
struct preload_guard {
    bool (*is_busy)(void *context);
    void *context;
};

/* Loads the library of an entry with its kernels for later clients. On a separate thread, while no
 * client is busy; once one is, the remaining kernels are skipped. The device's context is current.
 * CUDA_SUCCESS also when the library is cached; else the driver's error, CUDA_ERROR_INVALID_IMAGE,
 * or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult module_cache_preload(struct module_cache *cache, const struct device *device,
                              const struct code_entry *entry, const struct code_kernels *kernels,
                              const struct preload_guard *guard);

/* The number of preloaded libraries that clients have used. */
unsigned module_cache_preloads_used(struct module_cache *cache);
