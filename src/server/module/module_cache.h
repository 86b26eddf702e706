/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of loaded libraries. They outlive the clients that loaded them, so that a program's
 * second start finds its modules loaded. Clients with the same program share libraries without
 * variables. A library with variables serves one client at a time, and its variables are reset for
 * the next client.
 *
 * Functions may be called from any thread.
 */
#pragma once

#include <pthread.h>

#include "cached.h"
#include "image_load.h"
#include "image_store.h"
#include "list.h"
#include "unload_queue.h"

/* Bytes of idle libraries, of their images and of their variables on the devices. */
#define MODULE_CACHE_IDLE_BYTES (512ull << 20)

/* Limit of idle libraries: a small library takes far more memory than its image. */
#define MODULE_CACHE_IDLE_MAX 1024u

/* Limits of the libraries with variables that a client has unloaded and that wait for its end. They
 * bound their number, and the bytes of their variables, for which no client is charged. */
#define MODULE_CACHE_PARKED_MAX 64u
#define MODULE_CACHE_PARKED_BYTES (8ull << 20)

/* The number of idle copies of a library with variables that stay when no client is left, for
 * clients that start together. */
#define MODULE_CACHE_COPIES_KEPT 8u

struct image_reader;
struct ptx_compiler;

struct module_cache {
    struct image_store images;
    struct image_reader *reader;         /* NULL: images are looked into here */
    const struct ptx_compiler *compiler; /* NULL: the driver compiles PTX */
    pthread_mutex_t lock;
    pthread_cond_t loaded;
    struct list entries; /* struct cached; the one that was used last is the last */
    uint64_t idle_bytes, idle_bytes_max;
    unsigned idle_count, idle_count_max;
    bool enabled;
    unsigned preloads_used; /* libraries of the code cache that clients have used */
    struct unload_queue unload_queue;
};

/* Before any other thread uses it. With `enabled` false each client loads its libraries itself. */
void module_cache_init(struct module_cache *cache, struct gate *gate, bool enabled);

/* Before any other thread uses it. The caller keeps reader and compiler. */
void module_cache_set_reader(struct module_cache *cache, struct image_reader *reader);
void module_cache_set_compiler(struct module_cache *cache, const struct ptx_compiler *compiler);

/* Unloads all libraries. No client uses one any more. */
void module_cache_fini(struct module_cache *cache);

/* The library of an image, loaded now unless it is cached. The device's context is current. Returns
 * the driver's result of a load, that of a compilation (compiled_image.h),
 * CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_INVALID_IMAGE when the process that read the image
 * failed. In each case the caller refunds *request->charged later. */
CUresult module_cache_get(struct module_cache *cache, const struct image_request *image,
                          struct cached **ret_cached, struct image_log *ret_log);

/* The library of `twin`, which serves one client alone, for that client on another device.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult module_cache_join(const struct cached *twin, const struct device *device,
                           struct cached **ret_cached);

/* Drops the client's use. If the library has variables, none of its kernels runs: see
 * module_cache_park(). The device's context is current. NULL is allowed. */
void module_cache_put(struct module_cache *cache, struct cached *cached);

/* The same for a library whose kernels may still run. One with variables is parked in the list, if
 * it has capacity. The second drops all parked libraries when the client's work is done. */
void module_cache_park(struct module_cache *cache, struct cached *cached, struct list *parked);
void module_cache_put_parked(struct module_cache *cache, struct list *parked);

/* Whether the unload queue has libraries. */
bool module_cache_has_unloads(struct module_cache *cache);

/* Whether the unload queue exceeds its budget, so that some libraries should be unloaded soon. */
bool module_cache_is_over_budget(struct module_cache *cache);

/* No client is busy: unloads one library of the queue. False when there is none, or when a stream
 * waits for a value. */
bool module_cache_unload(struct module_cache *cache);

/* Memory is short: waits, and unloads all unused libraries. False when there was none. */
bool module_cache_give_way(struct module_cache *cache);

/* There are no clients: keeps some copies of each library with variables on a device, and drops the
 * others. The device's context is current. */
void module_cache_trim(struct module_cache *cache, const struct device *device);
