/* SPDX-License-Identifier: Apache-2.0 */
/* A library is saved once a client has looked up one of its kernels. */
#include "module_keep.h"

#include <stdlib.h>
#include <string.h>

#include "cached_state.h"
#include "cleanup.h"
#include "device.h"

static bool is_unsaved(struct cached *cached)
{
    return cached->sharing != FOR_ONE && !cached->loading && cached->image &&
           cached->options_size <= CODE_OPTIONS_MAX &&
           kernel_table_count(&cached->kernels) > cached->saved_kernels;
}

static struct cached *find_unsaved_locked(struct module_cache *cache)
{
    list_for_each (struct cached, cached, &cache->entries, link) {
        if (is_unsaved(cached))
            return cached;
    }
    return NULL;
}

/* The lock keeps the entry alive; a reference keeps the image. */
static bool copy_locked(struct cached *cached, struct unsaved_library *ret_library)
{
    struct code_kernels *kernels = &ret_library->kernels;
    size_t size;

    memset(ret_library, 0, sizeof(*ret_library));
    kernels->names = kernel_table_names(&cached->kernels, &kernels->count, &size);
    cached->saved_kernels = kernels->count;
    if (!kernels->names || size > CODE_NAMES_MAX) {
        free(kernels->names);
        return false;
    }
    kernels->names_size = (uint32_t)size;
    kernels->devices = 1ull << cached->device->ordinal;
    ret_library->image = stored_image_ref(cached->image);
    ret_library->compute_capability = device_compute_capability(cached->device);
    ret_library->options_size = cached->options_size;
    if (cached->options_size)
        memcpy(ret_library->options, cached->options, cached->options_size);
    return true;
}

bool module_cache_next_unsaved(struct module_cache *cache, struct unsaved_library *ret_library)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);
    struct cached *cached = find_unsaved_locked(cache);

    return cached && copy_locked(cached, ret_library);
}

void unsaved_library_fini(struct unsaved_library *library)
{
    stored_image_unref(library->image);
    free(library->kernels.names);
}

unsigned module_cache_preloads_used(struct module_cache *cache)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);

    return cache->preloads_used;
}
