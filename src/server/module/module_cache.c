/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with variables is in the cache only while no client uses it; another library always is.
 * An image is stored once, so equal images are the same object. An unshared image is loaded for its
 * client alone. The list has a library from the start of its load, so clients that start together
 * load it once.
 */
#include "module_cache.h"

#include <stdlib.h>
#include <string.h>

#include "cached_state.h"
#include "cleanup.h"
#include "image_reader.h"
#include "log.h"

void module_cache_init(struct module_cache *cache, struct gate *gate, bool enabled)
{
    *cache = (struct module_cache){.enabled = enabled,
                                   .idle_bytes_max = MODULE_CACHE_IDLE_BYTES,
                                   .idle_count_max = MODULE_CACHE_IDLE_MAX};
    image_store_init(&cache->images);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->loaded, NULL);
    list_init(&cache->entries);
    unload_queue_init(&cache->unload_queue, gate);
}

void module_cache_set_reader(struct module_cache *cache, struct image_reader *reader)
{
    cache->reader = reader;
}

void module_cache_set_compiler(struct module_cache *cache, const struct ptx_compiler *compiler)
{
    cache->compiler = compiler;
}

/* More than any device has, and small enough for sums. */
#define DEVICE_BYTES_MAX (1ull << 40)

/* Bytes of the image, of copies of its variables, and of the variables on the device. */
static uint64_t kept_bytes(const struct cached *cached)
{
    uint64_t on_device =
        cached->variable_bytes < DEVICE_BYTES_MAX ? cached->variable_bytes : DEVICE_BYTES_MAX;

    return cached->size + cached->variables.bytes + on_device;
}

/* The library goes to the unload queue, because cuLibraryUnload waits for all streams. */
static void cached_destroy(struct module_cache *cache, struct cached *cached)
{
    if (library_put(cached->library))
        unload_queue_add(&cache->unload_queue, cached->library, kept_bytes(cached));
    kernel_table_fini(&cached->kernels);
    variables_fini(&cached->variables);
    stored_image_unref(cached->image);
    free(cached);
}

bool module_cache_unload(struct module_cache *cache)
{
    return unload_queue_unload(&cache->unload_queue);
}

bool module_cache_has_unloads(struct module_cache *cache)
{
    return unload_queue_has_libraries(&cache->unload_queue);
}

bool module_cache_is_over_budget(struct module_cache *cache)
{
    return unload_queue_is_over_budget(&cache->unload_queue);
}

void module_cache_fini(struct module_cache *cache)
{
    list_for_each_safe (struct cached, cached, &cache->entries, link) {
        list_remove(&cached->link);
        cached_destroy(cache, cached);
    }
    unload_queue_fini(&cache->unload_queue);
    image_store_fini(&cache->images);
}

/* The properties of the code become known when the image has been read. */
static struct cached *cached_create(const struct image_request *request)
{
    struct cached *cached = calloc(1, sizeof(*cached) + request->options_size);

    if (cached)
        cached->library = library_create(request->image, request->options, request->options_size);
    if (!cached || !cached->library) {
        free(cached);
        return NULL;
    }
    list_init(&cached->link);
    kernel_table_init(&cached->kernels);
    cached->device = request->device;
    cached->users = 1;
    cached->image = stored_image_ref(request->image);
    cached->size = cached->image->size;
    cached->options_size = request->options_size;
    if (request->options_size)
        memcpy(cached->options, request->options, request->options_size);
    return cached;
}

static bool cached_is(const struct cached *cached, const struct image_request *request)
{
    return cached->image == request->image && cached->device == request->device &&
           cached->options_size == request->options_size &&
           (!request->options_size ||
            !memcmp(cached->options, request->options, request->options_size));
}

static struct cached *find_locked(struct module_cache *cache, const struct image_request *request)
{
    list_for_each (struct cached, cached, &cache->entries, link) {
        if (cached_is(cached, request))
            return cached;
    }
    return NULL;
}

/* The entry becomes idle (1), or it is in use or gone (-1). */
static void count_idle_locked(struct module_cache *cache, const struct cached *cached, int sign)
{
    cache->idle_bytes += (uint64_t)sign * kept_bytes(cached);
    cache->idle_count += (unsigned)sign;
}

/* Takes a use of the entry, after its load. If the load fails, the entry is gone and the search
 * starts again. */
static struct cached *use_locked(struct module_cache *cache, const struct image_request *request)
{
    struct cached *cached;

    while ((cached = find_locked(cache, request)) && cached->loading)
        pthread_cond_wait(&cache->loaded, &cache->lock);
    if (!cached)
        return NULL;
    if (!cached->users++)
        count_idle_locked(cache, cached, -1);
    cache->preloads_used += cached->is_preloaded;
    cached->is_preloaded = false;
    list_remove(&cached->link);
    if (cached->sharing == FOR_ALL)
        list_append(&cache->entries, &cached->link);
    return cached;
}

/* ---- loading ---- */

/* The cached entry, or else a new one. Other clients with the same image wait for it. If the
 * library is known to be unshareable, each client loads its own in parallel. */
static struct cached *find_or_announce(struct module_cache *cache,
                                       const struct image_request *request, bool *ret_found)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);
    struct cached *cached = use_locked(cache, request);

    *ret_found = cached != NULL;
    if (cached)
        return cached;
    cached = cached_create(request);
    if (cached && !atomic_load(&request->image->has_variables)) {
        cached->sharing = FOR_ALL;
        cached->loading = true;
        list_append(&cache->entries, &cached->link);
    }
    return cached;
}

/* Strings and tables that compilers add are the same for all clients. */
static bool is_for_all(const struct image_facts *facts)
{
    return !facts->has_variables ||
           (facts->has_names && !facts->prints && !image_names_first_variable(&facts->names));
}

/* A library with variables may serve other clients later, if all variables are known and small
 * enough to be copied. A library that prints may not, because the driver's buffer may have output
 * of its client. A library for one client does not need its image any more. */
static void make_own(struct cached *cached, struct image_facts *facts, bool for_others)
{
    bool known = facts->has_names && facts->variable_bytes <= VARIABLES_BYTES_MAX;

    cached->sharing = known && for_others && !facts->prints ? IN_TURN : FOR_ONE;
    cached->has_state = !known || !image_names_are_constant(&facts->names);
    if (known) {
        cached->variables.names = facts->names;
        facts->names = (struct image_names){0};
    }
    if (cached->sharing == FOR_ONE)
        stored_image_unref(steal_pointer(cached->image));
}

/* The load and the reading are done. A library that failed or cannot be shared leaves the cache,
 * and waiting clients load their own. */
static void settle_load(struct module_cache *cache, struct cached *cached,
                        struct image_facts *facts, bool for_others, CUresult result)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);
    bool for_all = result == CUDA_SUCCESS && cached->loading && is_for_all(facts);

    cached->library->may_print = facts->prints;
    cached->library->has_callers = facts->has_callers;
    cached->library->callers = facts->callers;
    facts->callers = (struct image_names){0};
    if (facts->has_strings)
        cached->library->formats = print_formats_create(facts->strings.bytes, facts->strings.size);
    cached->library->may_allocate = facts->allocates;
    cached->library->has_pointers = facts->has_pointers;
    cached->variable_bytes = facts->variable_bytes;
    if (cached->loading && !for_all)
        list_remove(&cached->link);
    if (result == CUDA_SUCCESS && !for_all) {
        atomic_store(&cached->image->has_variables, true);
        make_own(cached, facts, for_others);
    }
    cached->loading = false;
    pthread_cond_broadcast(&cache->loaded);
}

static void log_load(const struct cached *cached)
{
    static const char *const whom[] = {
        [FOR_ONE] = "one client", [IN_TURN] = "one client at a time", [FOR_ALL] = "all"};
    const char *variable = image_names_first_variable(&cached->variables.names);

    log_debug("Module of %llu bytes is loaded for %s%s%s", (unsigned long long)cached->size,
              whom[cached->sharing], variable ? ": variable " : "", variable ? variable : "");
}

static CUresult load_new(struct module_cache *cache, struct cached *cached, bool for_others,
                         const struct image_request *request, struct image_log *ret_log)
{
    struct image_facts facts;
    CUresult result = image_load(cache, cached, request, ret_log, &facts);

    settle_load(cache, cached, &facts, for_others, result);
    image_facts_fini(&facts);
    if (result == CUDA_SUCCESS)
        log_load(cached);
    return result;
}

static CUresult take_found(struct module_cache *cache, const struct image_request *request,
                           struct cached *cached, struct cached **ret_cached)
{
    CUresult result = image_load_charge(request, cached->variable_bytes);

    log_debug("Module of %llu bytes is cached", (unsigned long long)cached->size);
    if (result != CUDA_SUCCESS)
        module_cache_put(cache, cached);
    else
        *ret_cached = cached;
    return result;
}

CUresult module_cache_get(struct module_cache *cache, const struct image_request *request,
                          struct cached **ret_cached, struct image_log *ret_log)
{
    bool for_others = cache->enabled && request->image->number, found = false;
    struct cached *cached =
        for_others ? find_or_announce(cache, request, &found) : cached_create(request);
    CUresult result = CUDA_SUCCESS;

    ret_log->size = 0;
    if (!cached)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (found)
        return take_found(cache, request, cached, ret_cached);
    result = load_new(cache, cached, for_others, request, ret_log);
    if (result != CUDA_SUCCESS)
        cached_destroy(cache, cached);
    else
        *ret_cached = cached;
    return result;
}

CUresult module_cache_join(const struct cached *twin, const struct device *device,
                           struct cached **ret_cached)
{
    struct cached *cached = calloc(1, sizeof(*cached));

    if (!cached)
        return CUDA_ERROR_OUT_OF_MEMORY;
    list_init(&cached->link);
    kernel_table_init(&cached->kernels);
    cached->library = library_use(twin->library);
    cached->device = device;
    cached->sharing = FOR_ONE;
    cached->has_state = true;
    cached->users = 1;
    cached->size = twin->size;
    cached->variable_bytes = twin->variable_bytes;
    *ret_cached = cached;
    return CUDA_SUCCESS;
}

static void take_out_locked(struct module_cache *cache, struct cached *cached,
                            struct list *ret_evicted)
{
    count_idle_locked(cache, cached, -1);
    list_remove(&cached->link);
    list_append(ret_evicted, &cached->link);
}

/* Takes idle entries out until the others fit. */
static void evict_locked(struct module_cache *cache, struct list *ret_evicted)
{
    list_for_each_safe (struct cached, cached, &cache->entries, link) {
        if (cache->idle_bytes <= cache->idle_bytes_max &&
            cache->idle_count <= cache->idle_count_max)
            return;
        if (!cached->users)
            take_out_locked(cache, cached, ret_evicted);
    }
}

/* Called without the lock, because it may wait (unload_queue.h). */
static void destroy_evicted(struct module_cache *cache, struct list *evicted)
{
    list_for_each_safe (struct cached, victim, evicted, link) {
        list_remove(&victim->link);
        log_debug("Module of %llu bytes is evicted", (unsigned long long)victim->size);
        cached_destroy(cache, victim);
    }
}

static void take_idle_out(struct module_cache *cache, struct list *ret_evicted)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);

    list_for_each_safe (struct cached, cached, &cache->entries, link) {
        if (!cached->users)
            take_out_locked(cache, cached, ret_evicted);
    }
}

bool module_cache_give_way(struct module_cache *cache)
{
    struct list evicted;

    list_init(&evicted);
    take_idle_out(cache, &evicted);
    destroy_evicted(cache, &evicted);
    return unload_queue_drain(&cache->unload_queue);
}

/* ---- when no client is left ---- */

static bool is_same_image(const struct cached *a, const struct cached *b)
{
    return a->image == b->image && a->device == b->device && a->options_size == b->options_size &&
           !memcmp(a->options, b->options, a->options_size);
}

/* Counts the idle entries of the same image that were used later. */
static unsigned count_later_copies_locked(const struct module_cache *cache,
                                          const struct cached *cached)
{
    bool later = false;
    unsigned count = 0;

    list_for_each (struct cached, other, &cache->entries, link) {
        count += later && !other->users && is_same_image(other, cached);
        later |= other == cached;
    }
    return count;
}

void module_cache_trim(struct module_cache *cache, const struct device *device)
{
    struct list surplus;

    list_init(&surplus);
    pthread_mutex_lock(&cache->lock);
    list_for_each_safe (struct cached, cached, &cache->entries, link) {
        if (cached->device == device && cached->sharing == IN_TURN && !cached->users &&
            count_later_copies_locked(cache, cached) >= MODULE_CACHE_COPIES_KEPT)
            take_out_locked(cache, cached, &surplus);
    }
    pthread_mutex_unlock(&cache->lock);
    destroy_evicted(cache, &surplus);
}

/* ---- giving back ---- */

static void put_shared(struct module_cache *cache, struct cached *cached, struct list *ret_evicted)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&cache->lock);

    if (--cached->users)
        return;
    if (cached->sharing == IN_TURN)
        list_append(&cache->entries, &cached->link);
    count_idle_locked(cache, cached, 1);
    evict_locked(cache, ret_evicted);
}

void module_cache_put(struct module_cache *cache, struct cached *cached)
{
    struct list evicted;

    if (!cached)
        return;
    if (cached->sharing == FOR_ONE ||
        (cached->sharing == IN_TURN &&
         variables_restore(&cached->variables, cached->device->gate) != CUDA_SUCCESS)) {
        cached_destroy(cache, cached);
        return;
    }
    list_init(&evicted);
    put_shared(cache, cached, &evicted);
    destroy_evicted(cache, &evicted);
}

static bool has_parking_space(const struct list *parked, const struct cached *more)
{
    uint64_t bytes = more->variable_bytes;
    unsigned count = 0;

    list_for_each (struct cached, cached, parked, link) {
        bytes += cached->variable_bytes;
        count++;
    }
    return count < MODULE_CACHE_PARKED_MAX && bytes <= MODULE_CACHE_PARKED_BYTES;
}

void module_cache_park(struct module_cache *cache, struct cached *cached, struct list *parked)
{
    if (!cached || cached->sharing != IN_TURN) {
        module_cache_put(cache, cached);
    } else if (has_parking_space(parked, cached)) {
        list_append(parked, &cached->link);
    } else {
        cached_destroy(cache, cached);
    }
}

void module_cache_put_parked(struct module_cache *cache, struct list *parked)
{
    list_for_each_safe (struct cached, cached, parked, link) {
        list_remove(&cached->link);
        module_cache_put(cache, cached);
    }
}
