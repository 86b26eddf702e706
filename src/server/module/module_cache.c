/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with variables is in the cache only while no client uses it; another library always is.
 * An image is stored once, so equal images are the same object. An unshared image is loaded for its
 * client alone. The list has a library from the start of its load, so clients that start together
 * load it once.
 */
#include "module_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cached.h"
#include "cleanup.h"
#include "device.h"
#include "feature.h"
#include "image_reader.h"
#include "log.h"
#include "memory.h"
#include "session.h"

const struct library *cached_library(const struct cached *cached)
{
    return cached->library;
}

struct kernel_table *cached_kernels(struct cached *cached)
{
    return &cached->kernels;
}

bool cached_is_shared(const struct cached *cached)
{
    return cached->sharing != FOR_ONE;
}

bool cached_has_variables(const struct cached *cached)
{
    return cached->sharing != FOR_ALL;
}

uint64_t cached_variable_bytes(const struct cached *cached)
{
    return cached->variable_bytes;
}

bool cached_has_state(const struct cached *cached)
{
    return cached->has_state || cached->library->may_allocate;
}

static bool is_carried(const struct cached *cached)
{
    return cached->variables.names.count && !cached->library->may_allocate &&
           !feature_is_off_once(FEATURE_VARIABLE_MOVES);
}

uint32_t cached_state(const struct cached *cached)
{
    if (!cached_has_state(cached))
        return WIRE_STATE_NONE;
    return is_carried(cached) ? WIRE_STATE_CARRIED : WIRE_STATE_LOST;
}

bool cached_carries(const struct cached *cached, const char *name)
{
    const struct variables *variables = is_carried(cached) ? cached_variables(cached) : NULL;
    const struct variable *variable = variables ? variables_find(variables, name) : NULL;

    return variable && !variable_is_relocated(variables, variable);
}

const struct variables *cached_variables(const struct cached *cached)
{
    return cached->variables.each ? &cached->variables : NULL;
}

bool cached_is_loaded(const struct cached *cached)
{
    return cached->is_loaded;
}

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

CUresult variables_charge(struct session *session, const struct device *device, uint64_t bytes,
                          uint64_t *ret_charged)
{
    unsigned ordinal = (unsigned)device->ordinal;

    if (bytes == IMAGE_BYTES_UNKNOWN) {
        bytes = session->limits.memory[ordinal];
        if (bytes)
            session_log_error(session, "cuLibraryLoadData: how large the variables are cannot be "
                                       "told from the image, so they count as the whole memory "
                                       "limit");
    }
    if (!bytes)
        return CUDA_SUCCESS;
    if (!memory_charge(session, ordinal, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_charged = bytes;
    return CUDA_SUCCESS;
}

static CUresult charge_variables(const struct image_request *request, uint64_t bytes)
{
    return request->charged
               ? variables_charge(request->session, request->device, bytes, request->charged)
               : CUDA_SUCCESS;
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

static void keep_log(const char *text, size_t most, struct image_log *ret_log)
{
    uint32_t size = (uint32_t)strnlen(text, most);

    ret_log->size = size < ret_log->capacity ? size : ret_log->capacity;
    if (ret_log->size)
        memcpy(ret_log->text, text, ret_log->size);
}

static void report_failure(struct session *session, const char *what)
{
    if (session)
        session_log_error(session, "cuLibraryLoadData: %s", what);
    else
        log_line("Code that was used before is not loaded: %s", what);
}

static void report_compiler(struct session *session, CUresult result)
{
    if (result == CUDA_ERROR_INVALID_IMAGE)
        report_failure(session,
                       "the process that compiled the image crashed, or needed too much time; the "
                       "image is refused");
    if (result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
        report_failure(session, "the process that compiles PTX is gone; a new server has one");
}

/* Logs the first message of the driver's compiler; the client gets all. */
static void report_driver(struct session *session, const char *log)
{
    char line[256];

    snprintf(line, sizeof(line), "%.*s", (int)strcspn(log, "\n"), log);
    if (*line)
        report_failure(session, line);
}

static CUresult load_library(const struct module_cache *cache, struct cached *cached,
                             struct session *session, struct image_log *ret_log)
{
    struct library *library = cached->library;
    CUresult result =
        compiled_image_make(cache->compiler, library, library->image,
                            device_compute_capability(cached->device), &library->code);

    if (result == CUDA_SUCCESS) {
        result = library_load(library);
        keep_log(library->log, LIBRARY_LOG_SIZE, ret_log);
        if (result != CUDA_SUCCESS)
            report_driver(session, library->log);
    } else {
        report_compiler(session, result);
        keep_log(library->code.compiled.log, LIBRARY_LOG_SIZE, ret_log);
    }
    return result;
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

static CUresult looked_into(int error, struct session *session)
{
    if (!error)
        return CUDA_SUCCESS;
    report_failure(session,
                   error == -EBADMSG
                       ? "the process that looked into the image crashed, or needed too much "
                         "time; the image is refused"
                       : "too little memory to look into the image");
    return error == -EBADMSG ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult compile_image(const struct cached *cached, struct session *session,
                              struct image_log *ret_log)
{
    CUresult result = library_compile(cached->library, session, cached->device);

    keep_log(cached->library->log, LIBRARY_LOG_SIZE, ret_log);
    return result;
}

/* Another process reads the image (image_reader.h) while the driver loads it: both expand it, which
 * takes most of the time. The client is charged before the driver allocates device memory. */
static CUresult load_and_look(const struct module_cache *cache, struct cached *cached,
                              const struct image_request *request, struct image_log *ret_log,
                              struct image_facts *ret_facts)
{
    struct session *session = request->session;
    const struct stored_image *image = cached->image;
    const struct image_source source = {image->fd, image->bytes, image->size};
    struct image_question question;

    image_reader_begin(cache->reader, &source, device_compute_capability(cached->device),
                       &question);
    CUresult result = load_library(cache, cached, session, ret_log);
    CUresult looked = looked_into(image_reader_end(cache->reader, &question, ret_facts), session);
    if (looked != CUDA_SUCCESS)
        image_facts_assume(ret_facts);
    if (result == CUDA_SUCCESS)
        result = looked;
    if (result == CUDA_SUCCESS)
        result = charge_variables(request, ret_facts->variable_bytes);
    return result == CUDA_SUCCESS ? compile_image(cached, session, ret_log) : result;
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
    CUresult result = load_and_look(cache, cached, request, ret_log, &facts);

    settle_load(cache, cached, &facts, for_others, result);
    image_facts_fini(&facts);
    if (result == CUDA_SUCCESS)
        log_load(cached);
    return result;
}

static CUresult take_found(struct module_cache *cache, const struct image_request *request,
                           struct cached *cached, struct cached **ret_cached)
{
    CUresult result = charge_variables(request, cached->variable_bytes);

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

/* For the next client, or for a move of this one to another server. */
static bool is_worth_recording(const struct cached *cached)
{
    return cached->sharing == IN_TURN || (cached->sharing == FOR_ONE && is_carried(cached));
}

/* If its variables cannot be recorded, the library serves this client alone, which stays. */
static void remember_variables(struct cached *cached)
{
    if (cached->variables.each || !is_worth_recording(cached))
        return;
    if (variables_remember(&cached->variables, cached->library->driver) == CUDA_SUCCESS)
        return;
    cached->sharing = FOR_ONE;
    image_names_fini(&cached->variables.names);
}

CUresult cached_query_begin(struct cached *cached, struct session *session, const char *what,
                            struct exclusive_call *call)
{
    CUresult result = cached->is_loaded || !session
                          ? exclusive_begin_now(cached->device, what, call)
                          : exclusive_begin(session, cached->device, what, call);

    if (result == CUDA_SUCCESS)
        remember_variables(cached);
    return result;
}

void cached_query_end(struct cached *cached, struct session *session, CUresult result,
                      struct exclusive_call *call)
{
    if (result == CUDA_SUCCESS)
        cached->is_loaded = true;
    exclusive_end(session, cached->device, call);
}
