/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded libraries, kept beyond the clients that loaded them, so that a program's second start
 * finds its modules there. Clients that run the same program share them, but only libraries without
 * variables: kernels are the same for all clients, variables are each client's own. A library with
 * variables has one client at a time, and the next client finds them as they were after the load.
 *
 * Functions may be called from any thread.
 */
#pragma once

#include <pthread.h>

#include "calm.h"
#include "image_store.h"
#include "kernel_table.h"
#include "library.h"
#include "list.h"
#include "unload_queue.h"

/* Bytes of idle libraries, of their images and of their variables on the devices. */
#define MODULE_CACHE_IDLE_BYTES (512ull << 20)

/* How many idle libraries are kept: a small one costs far more memory than its image has bytes. */
#define MODULE_CACHE_IDLE_MAX 1024u

/* How many libraries with variables a client may have unloaded that wait for its end, and bytes of
 * these variables, which nobody is charged for. */
#define MODULE_CACHE_PARKED_MAX 64u
#define MODULE_CACHE_PARKED_BYTES (8ull << 20)

/* How many idle copies of a library with variables are kept when no client is left, for the next
 * clients that start together. */
#define MODULE_CACHE_COPIES_KEPT 8u

struct cached;
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
    unsigned preloads_used; /* libraries of the code cache that clients have asked for */
    struct unload_queue unload_queue;
};

/* What a client wants loaded. */
struct image_request {
    struct session *session; /* on whose thread it is loaded; NULL: no client is busy */
    const struct device *device;
    struct stored_image *image;
    const void *options;
    uint32_t options_size;
    uint64_t *charged; /* what the session is charged for variables; NULL: nothing is */
};

/* A buffer for what the compiler says; `size` is what was written. */
struct image_log {
    char *text;
    uint32_t capacity, size;
};

/* Before any other thread uses it. With `enabled` false each client loads its libraries itself. */
void module_cache_init(struct module_cache *cache, struct quiesce *quiesce, bool enabled);

/* Before any other thread uses it. Reader and compiler stay the caller's. */
void module_cache_set_reader(struct module_cache *cache, struct image_reader *reader);
void module_cache_set_compiler(struct module_cache *cache, const struct ptx_compiler *compiler);

/* Unloads all libraries. None is used any more. */
void module_cache_fini(struct module_cache *cache);

/* The library of an image, loaded now if it is not there. The device's context is current. What the
 * driver says of a load, what compiled_image.h says of a compilation, CUDA_ERROR_OUT_OF_MEMORY, or
 * CUDA_ERROR_INVALID_IMAGE when the process that looked into the image failed. *request->charged is
 * then the caller's to refund, whatever comes of the load. */
CUresult module_cache_get(struct module_cache *cache, const struct image_request *image,
                          struct cached **ret_cached, struct image_log *ret_log);

/* The library of `twin`, which is one client's alone, for that client's use on another device.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult module_cache_join(const struct cached *twin, const struct device *device,
                           struct cached **ret_cached);

/* The client gives up its use. If the library has variables, no kernel of it runs: see
 * module_cache_park(). The device's context is current. NULL is allowed. */
void module_cache_put(struct module_cache *cache, struct cached *cached);

/* The same for a library whose kernels may still run. One with variables goes into the list, if
 * there is space, and the second gives back all in the list when the client's work is done. */
void module_cache_park(struct module_cache *cache, struct cached *cached, struct list *parked);
void module_cache_put_parked(struct module_cache *cache, struct list *parked);

/* Whether there are libraries that are retired. */
bool module_cache_has_unloads(struct module_cache *cache);

/* Whether so many are retired that some had better be unloaded soon. */
bool module_cache_is_over_budget(struct module_cache *cache);

/* No client is busy: unloads one library that is retired. False when there is none, or when a
 * stream waits for a value. */
bool module_cache_unload(struct module_cache *cache);

/* There is too little memory: waits, and unloads all libraries that no client uses. False when
 * there was none. */
bool module_cache_give_way(struct module_cache *cache);

/* There are no clients: of the libraries with variables on a device some copies of each image stay.
 * The device's context is current. */
void module_cache_trim(struct module_cache *cache, const struct device *device);

/* The library of an entry that the caller uses. */
const struct library *cached_library(const struct cached *cached);

/* What is known of its kernels. */
struct kernel_table *cached_kernels(struct cached *cached);

/* Whether other clients may use it, now or later. */
bool cached_is_shared(const struct cached *cached);

/* Whether it may have variables of the program's: those of the compiler are no client's to write.
 */
bool cached_has_variables(const struct cached *cached);

/* Charges the session for variables of a library on a device: of so many bytes that the image
 * tells, or all that the client may have when that is IMAGE_BYTES_UNKNOWN. CUDA_ERROR_OUT_OF_MEMORY
 * beyond its limit. */
CUresult variables_charge(struct session *session, const struct device *device, uint64_t bytes,
                          uint64_t *ret_charged);

/* Bytes of its variables on the device, or IMAGE_BYTES_UNKNOWN. */
uint64_t cached_variable_bytes(const struct cached *cached);

/* Whether its kernels may keep state for their next launch, which is then this client's. */
bool cached_has_state(const struct cached *cached);

/* On the session's thread, in the device's context: around a call, named `what`, that asks the
 * driver for a kernel or a variable of the library. The driver loads the library for the first one,
 * and waits for all streams; later ones find it loaded. The result is calm_begin()'s (calm.h), and
 * with an error cached_query_end() must not be called. `session` may be NULL, on another thread,
 * while no client is busy. */
CUresult cached_query_begin(struct cached *cached, struct session *session, const char *what,
                            struct calm *calm);
/* `result` is the call's. */
void cached_query_end(struct cached *cached, struct session *session, CUresult result,
                      struct calm *calm);
