/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server works without the cache: an entry that cannot be read is not loaded, and code that
 * cannot be written is not saved.
 */
#include "code_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "code_list.h"
#include "code_load_lock.h"
#include "gate.h"
#include "log.h"
#include "module_keep.h"
#include "server_life.h"
#include "server_module.h"
#include "text.h"
#include "upkeep.h"

/* Pauses between two loads, and between two searches for unsaved code. */
#define LOAD_NS (20 * NS_PER_MS)
#define SAVE_NS (1 * NS_PER_SEC)

/* Bytes of images to preload. The other half of the module cache's idle capacity is for new
 * libraries. */
#define PRELOAD_BYTES (MODULE_CACHE_IDLE_BYTES / 2)

/* Limit of the wait for the disk when the server ends. */
#define FINISH_S 2

struct code_cache {
    struct server *server;
    struct code_directory directory;
    struct code_list pending; /* what may be loaded; the thread's */
    unsigned next;            /* of the pending entries */
    uint64_t loaded_bytes;

    pthread_mutex_t save_lock;
    bool failed; /* a write has failed, and the log says so; under the lock */

    pthread_mutex_t lock;
    bool finished; /* nothing is loaded or saved any more */
    int load_lock; /* of the entry that is being loaded, or -1 */
    char locked_name[CODE_NAME_SIZE];
    struct server_code_cache seen; /* without `used` */
};

/* ---- loading ---- */

static bool is_busy(void *context)
{
    struct server *server = context;

    return server_is_busy(server) || gate_has_waits(server->devices.gate);
}

static struct code_origin origin_of(const struct server *server, unsigned compute_capability,
                                    uint32_t owner)
{
    return (struct code_origin){
        .driver_version = (uint32_t)server->devices.driver_version,
        .compute_capability = compute_capability,
        .is_soft = server->life->driver_kind == DRIVER_SOFT,
        .owner = owner,
    };
}

/* Skips code for another driver, or for another kind of device. */
static bool suits(const struct server *server, const struct code_origin *origin,
                  const struct device *device)
{
    struct code_origin here = origin_of(server, device_compute_capability(device), origin->owner);

    return !memcmp(&here, origin, sizeof(here));
}

static bool load_on(struct code_cache *cache, const struct device *device,
                    const struct code_entry *entry, const struct code_kernels *kernels)
{
    struct server *server = cache->server;
    const struct preload_guard guard = {.is_busy = is_busy, .context = server};

    return suits(server, &entry->origin, device) && device_enter(device) == CUDA_SUCCESS &&
           module_cache_preload(server_module_cache(server), device, entry, kernels, &guard) ==
               CUDA_SUCCESS;
}

static void load_on_all(struct code_cache *cache, const struct code_entry *entry,
                        const struct code_kernels *kernels)
{
    bool loaded = false;

    for (unsigned i = 0; i < cache->server->devices.count; i++) {
        if (kernels->devices >> i & 1)
            loaded |= load_on(cache, &cache->server->devices.device[i], entry, kernels);
    }
    cache->loaded_bytes += loaded ? entry->image_size : 0;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);
    cache->seen.loaded += loaded;
}

/* False when the server ends. */
static bool begin_load(struct code_cache *cache, const char *name)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);

    if (cache->finished)
        return false;
    text_copy(cache->locked_name, sizeof(cache->locked_name), name);
    code_load_lock_take(&cache->directory, name, &cache->load_lock);
    return true;
}

static void end_load(struct code_cache *cache)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);

    code_load_lock_release(&cache->directory, cache->locked_name, &cache->load_lock);
}

static bool may_suit(const struct code_cache *cache, const char *name)
{
    const struct server *server = cache->server;
    struct code_origin origin;
    uint64_t size;
    bool found = false;

    if (code_entry_peek(&cache->directory, name, &origin, &size) ||
        size > PRELOAD_BYTES - cache->loaded_bytes)
        return false;
    for (unsigned i = 0; i < server->devices.count; i++)
        found |= suits(server, &origin, &server->devices.device[i]);
    return found;
}

static void load_entry(struct code_cache *cache, const char *name)
{
    struct code_kernels kernels = {0};
    struct code_entry entry = {0};

    if (!may_suit(cache, name) || code_kernels_load(&cache->directory, name, &kernels))
        return;
    if (!code_entry_load(&cache->directory, name, &entry) && begin_load(cache, name)) {
        load_on_all(cache, &entry, &kernels);
        end_load(cache);
    }
    code_entry_fini(&entry);
    free(kernels.names);
}

static void log_end(const struct code_cache *cache)
{
    if (cache->seen.loaded)
        log_line("Loaded %u librar%s (%llu KiB) that programs used before, from %s",
                 cache->seen.loaded, cache->seen.loaded == 1 ? "y" : "ies",
                 (unsigned long long)(cache->loaded_bytes >> 10), cache->directory.path);
}

static void load_next(struct code_cache *cache)
{
    if (cache->next == cache->pending.count || is_busy(cache->server))
        return;
    load_entry(cache, cache->pending.entries[cache->next++].name);
    if (cache->next == cache->pending.count)
        log_end(cache);
}

/* ---- saving ---- */

static void count_entries(struct code_cache *cache)
{
    struct code_list list;

    if (code_list_read(&cache->directory, &list))
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);
    cache->seen.entries = list.count;
    cache->seen.bytes = list.bytes;
    code_list_fini(&list);
}

static void merge_kernels(const struct code_cache *cache, const char *name,
                          struct code_kernels *kernels)
{
    struct code_kernels known = {0};

    if (!code_kernels_load(&cache->directory, name, &known))
        code_kernels_merge(kernels, &known);
    free(known.names);
}

static int save_library(struct code_cache *cache, struct unsaved_library *library)
{
    const struct code_entry entry = {
        .origin = origin_of(cache->server, library->compute_capability, library->image->owner),
        .image_size = library->image->size,
        .image = library->image->bytes,
        .options_size = library->options_size,
        .options = library->options,
    };
    char name[CODE_NAME_SIZE];

    code_entry_name(&entry, name);
    merge_kernels(cache, name, &library->kernels);
    int error = code_entry_save(&cache->directory, &entry);
    return error ? error : code_kernels_save(&cache->directory, name, &library->kernels);
}

/* A failed write, as on a full disk, only costs the next server a load. */
static void report_error(struct code_cache *cache, int error)
{
    if (error && !cache->failed)
        log_line("Code of programs cannot be saved in %s: %s", cache->directory.path,
                 error == -EFBIG ? "it is larger than FUNNEL_CACHE_MAXSIZE" : strerror(-error));
    cache->failed |= error != 0;
}

static void save_all_locked(struct code_cache *cache, uint64_t deadline)
{
    struct module_cache *modules = server_module_cache(cache->server);
    struct unsaved_library library;
    bool saved = false;

    while (clock_ns() < deadline && module_cache_next_unsaved(modules, &library)) {
        report_error(cache, save_library(cache, &library));
        unsaved_library_fini(&library);
        saved = true;
    }
    if (saved)
        count_entries(cache);
}

static void save_all(struct code_cache *cache)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->save_lock);

    save_all_locked(cache, UINT64_MAX);
}

/* ---- the thread ---- */

static bool is_finished(struct code_cache *cache)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);

    return cache->finished;
}

static void prepare_directory(struct code_cache *cache)
{
    unsigned deleted = code_load_locks_recover(&cache->directory);

    if (deleted)
        log_line("Deleted %u entries of %s: a server has ended while it loaded them", deleted,
                 cache->directory.path);
    code_list_read(&cache->directory, &cache->pending);
    count_entries(cache);
}

static void pause_thread(const struct code_cache *cache)
{
    uint64_t ns = cache->next < cache->pending.count ? LOAD_NS : SAVE_NS;

    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = (long)(ns % NS_PER_SEC)},
        NULL);
}

static void *run_code_cache(void *context)
{
    struct code_cache *cache = context;
    uint64_t saved_at = clock_ns();

    prepare_directory(cache);
    while (!is_finished(cache)) {
        load_next(cache);
        if (clock_ns() - saved_at >= SAVE_NS) {
            save_all(cache);
            saved_at = clock_ns();
        }
        pause_thread(cache);
    }
    return NULL;
}

static int open_directory(struct code_directory *directory)
{
    char path[PATH_MAX];
    int error;

    if (code_directory_is_off() || !code_directory_path(path, sizeof(path)))
        return -ENOENT;
    error = code_directory_open(directory, path, true);
    if (error == -EPERM)
        log_line("Code of programs is not kept: %s has to belong to this server's user, with mode "
                 "0700",
                 path);
    else if (error)
        log_line("Code of programs is not kept: %s: %s", path, strerror(-error));
    return error;
}

int code_cache_start(struct server *server)
{
    struct code_cache *cache = calloc(1, sizeof(*cache));
    pthread_t thread;

    if (!cache)
        return -ENOMEM;
    if (!server_module_cache(server)->enabled || open_directory(&cache->directory)) {
        free(cache);
        return 0;
    }
    cache->server = server;
    cache->load_lock = -1;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_mutex_init(&cache->save_lock, NULL);
    text_copy(cache->seen.path, sizeof(cache->seen.path), cache->directory.path);
    int error = pthread_create(&thread, NULL, run_code_cache, cache);
    if (error) {
        code_directory_close(&cache->directory);
        free(cache);
        return -error;
    }
    pthread_detach(thread);
    server->life->code_cache = cache;
    return 0;
}

static bool lock_saving(struct code_cache *cache)
{
    struct timespec deadline;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += FINISH_S;
    return !pthread_mutex_timedlock(&cache->save_lock, &deadline);
}

/* The thread may be inside the driver, and the server does not wait for it. */
void code_cache_finish(struct server *server)
{
    struct code_cache *cache = server->life->code_cache;

    if (!cache)
        return;
    pthread_mutex_lock(&cache->lock);
    cache->finished = true;
    code_load_lock_release(&cache->directory, cache->locked_name, &cache->load_lock);
    pthread_mutex_unlock(&cache->lock);
    if (!lock_saving(cache))
        return;
    save_all_locked(cache, clock_ns() + FINISH_S * NS_PER_SEC);
    pthread_mutex_unlock(&cache->save_lock);
}

void code_cache_describe(struct server *server, struct server_code_cache *ret_description)
{
    struct code_cache *cache = server->life->code_cache;

    memset(ret_description, 0, sizeof(*ret_description));
    if (!cache)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);
    *ret_description = cache->seen;
    ret_description->used = module_cache_preloads_used(server_module_cache(server));
}
