/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image store gets the image as if its client had sent it. So a program of the same user shares
 * it after comparing it with its own image.
 */
#include <string.h>

#include "cached_state.h"
#include "cleanup.h"
#include "image_check.h"
#include "kernel_query.h"
#include "module_keep.h"
#include "shm.h"

static CUresult store_image(struct module_cache *cache, const struct code_entry *entry,
                            struct stored_image **ret_image)
{
    int fd;

    if (!image_is_sound(entry->image, entry->image_size))
        return CUDA_ERROR_INVALID_IMAGE;
    if (shm_create_read_only("funnel-image", entry->image, entry->image_size, &fd))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return image_store_add(&cache->images, fd, entry->image_size, entry->origin.owner, ret_image);
}

/* Skips a kernel that does not exist any more. */
static void load_kernels(struct cached *cached, const struct code_kernels *kernels,
                         const struct preload_guard *guard)
{
    const char *name = kernels->names;
    struct known_kernel *known;

    for (uint32_t i = 0; i < kernels->count && !guard->is_busy(guard->context); i++) {
        kernel_query(cached, NULL, name, &known);
        name += strlen(name) + 1;
    }
}

/* The code on disk need not be saved again, unless clients look up more kernels. */
static void mark_preloaded(struct module_cache *cache, struct cached *cached)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);

    cached->is_preloaded = cached->users == 1;
    cached->saved_kernels = kernel_table_count(&cached->kernels);
}

static CUresult preload_library(struct module_cache *cache, const struct image_request *request,
                                const struct code_kernels *kernels,
                                const struct preload_guard *guard)
{
    struct image_log log = {0};
    struct cached *cached;
    CUresult result = module_cache_get(cache, request, &cached, &log);

    if (result != CUDA_SUCCESS)
        return result;
    if (!kernel_table_count(&cached->kernels)) {
        load_kernels(cached, kernels, guard);
        mark_preloaded(cache, cached);
    }
    module_cache_put(cache, cached);
    return CUDA_SUCCESS;
}

CUresult module_cache_preload(struct module_cache *cache, const struct device *device,
                              const struct code_entry *entry, const struct code_kernels *kernels,
                              const struct preload_guard *guard)
{
    struct image_request request = {
        .device = device,
        .options = entry->options,
        .options_size = entry->options_size,
    };
    CUresult result = store_image(cache, entry, &request.image);

    if (result != CUDA_SUCCESS)
        return result;
    result = preload_library(cache, &request, kernels, guard);
    stored_image_unref(request.image);
    return result;
}
