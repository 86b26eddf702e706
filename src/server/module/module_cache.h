/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded libraries, kept beyond the clients that loaded them: a program's second start finds its
 * modules there. Clients that run the same program share them, but only libraries without
 * variables: kernels are the same for everybody, variables are each client's own. A library with
 * variables has one client at a time, and the next finds them as they were at first.
 */
#pragma once

#include <pthread.h>

#include "image_store.h"
#include "kernel_table.h"
#include "library.h"
#include "list.h"
#include "retired.h"

/* Bytes of images of which nobody uses the library. */
#define MODULE_CACHE_IDLE_BYTES (512ull << 20)

/* Libraries with variables that a client has unloaded and that wait for its end. */
#define MODULE_CACHE_PARKED_MAX 64u

/* Of the same library with variables, when nobody is left: for the next few who start together. */
#define MODULE_CACHE_COPIES_KEPT 8u

struct cached;

struct module_cache {
    struct image_store images;
    pthread_mutex_t lock;
    pthread_cond_t loaded;
    struct list entries; /* struct cached; the one that was used last comes last */
    uint64_t idle_bytes, idle_bytes_max;
    bool enabled;
    struct retired retired;
};

/* What is to be loaded. */
struct image_request {
    const struct device *device;
    struct stored_image *image;
    const void *options;
    uint32_t options_size;
};

/* Room for what the compiler says. */
struct image_log {
    char *text;
    uint32_t capacity, size;
};

void module_cache_init(struct module_cache *cache, struct quiesce *quiesce, bool enabled);

/* Unloads all libraries. Nobody uses one any more. */
void module_cache_fini(struct module_cache *cache);

/* The library of an image, loaded now if need be. The device's context is current. */
CUresult module_cache_get(struct module_cache *cache, const struct image_request *image,
                          struct cached **ret_cached, struct image_log *ret_log);

/* The library of another, which is one client's alone, for that client's use on another device. */
CUresult module_cache_join(const struct cached *twin, const struct device *device,
                           struct cached **ret_cached);

/* The client is done with it, and has no kernel of it running if it has variables: see
 * module_cache_park(). The device's context is current. NULL is allowed. */
void module_cache_put(struct module_cache *cache, struct cached *cached);

/* The same at once for a library that others may use meanwhile. One with variables goes into the
 * list, if that has room: module_cache_put_parked() is called when the client's work is done. */
void module_cache_park(struct module_cache *cache, struct cached *cached, struct list *parked);
void module_cache_put_parked(struct module_cache *cache, struct list *parked);

/* Nobody is at work: unloads a library that is done with. False when there is none, or when that
 * can not be now. */
bool module_cache_unload(struct module_cache *cache);

/* There is too little memory: waits, and unloads all that is done with. False when that has changed
 * nothing. */
bool module_cache_give_way(struct module_cache *cache);

/* There are no clients: of the libraries with variables on a device some of each image stay,
 * however many clients had one at the same time. The device's context is current. */
void module_cache_trim(struct module_cache *cache, const struct device *device);

const struct library *cached_library(const struct cached *cached);

/* What has been learnt of its kernels. */
struct kernel_table *cached_kernels(struct cached *cached);

/* Whether other clients may use it, too: now, or afterwards. */
bool cached_is_shared(const struct cached *cached);

/* Whether its kernels may keep something for their next launch, which is then this client's. */
bool cached_has_state(const struct cached *cached);

/* To be called before anything is asked of the library that makes the driver load its code; the
 * device's context is current. */
void cached_will_be_used(struct cached *cached);
