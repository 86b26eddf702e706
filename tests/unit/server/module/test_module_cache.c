/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libraries clients share, and how long they stay.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"
#include "function.h"
#include "hash.h"
#include "image_facts.h"
#include "image_format.h"
#include "image_key.h"
#include "library.h"
#include "module_cache.h"
#include "module_keep.h"
#include "server_module.h"

#define PTX ".version 8.0\n.target sm_90\n.address_size 64\n"
#define ENTRY ".visible .entry k(.param .u64 p)\n{\nld.global.u32 %r1, [%rd1];\nret;\n}\n"

static const char plain[] = PTX ENTRY;
static const char variable[] = PTX ".visible .global .align 4 .u32 counter = 5;\n" ENTRY;

static const char managed[] =
    PTX ".visible .global .attribute(.managed) .align 4 .u32 counter = 5;\n" ENTRY;

static struct module_cache *cache_of(struct fixture *fixture)
{
    return server_module_cache(&fixture->server);
}

static CUresult try_get(struct fixture *fixture, const char *text, uint64_t option,
                        struct cached **ret_cached)
{
    uint64_t options[2] = {CU_JIT_OPTIMIZATION_LEVEL, option};
    const struct image_request image = {.session = fixture->session,
                                        .device = &fixture->server.devices.device[0],
                                        .image = fixture_image(fixture, text),
                                        .options = options,
                                        .options_size = sizeof(options)};
    char text_log[16];
    struct image_log log = {.text = text_log, .capacity = sizeof(text_log)};
    CUresult result = module_cache_get(cache_of(fixture), &image, ret_cached, &log);

    stored_image_unref(image.image);
    return result;
}

static struct cached *get(struct fixture *fixture, const char *text)
{
    struct cached *cached = NULL;

    assert_int_equal(try_get(fixture, text, 3, &cached), CUDA_SUCCESS);
    return cached;
}

/* As where a client asks for a kernel. */
static void query(struct fixture *fixture, struct cached *cached)
{
    struct exclusive_call call;

    assert_int_equal(cached_query_begin(cached, fixture->session, "a test", &call), CUDA_SUCCESS);
    cached_query_end(cached, fixture->session, CUDA_SUCCESS, &call);
}

/* What the cache gives up is unloaded when no client is busy. */
static const char *unload(struct module_cache *cache)
{
    while (module_cache_unload(cache))
        ;
    return fake_trace();
}

static int teardown(void **state)
{
    return fixture_teardown(state);
}

static void the_same_image_is_loaded_once(void **state)
{
    struct cached *first = get(*state, plain), *second = get(*state, plain);

    assert_ptr_equal(first, second);
    assert_true(cached_is_shared(first));
    assert_string_equal(fake_trace(), "load l1; ");
    module_cache_put(cache_of(*state), first);
    module_cache_put(cache_of(*state), second);
    assert_ptr_equal(get(*state, plain), first);
    assert_string_equal(fake_trace(), "");
    module_cache_put(cache_of(*state), first);
}

/* A load that lasts while a second client asks for the same library. */
static CUresult (*quick_load)(CUlibrary *, const void *, CUjit_option *, void **, unsigned,
                              CUlibraryOption *, void **, unsigned);
static atomic_bool loading, asked;
static const char *wanted;

static CUresult slow_load(CUlibrary *ret_library, const void *image, CUjit_option *options,
                          void **values, unsigned count, CUlibraryOption *library_options,
                          void **library_values, unsigned library_count)
{
    atomic_store(&loading, true);
    while (!atomic_load(&asked))
        usleep(100);
    usleep(20000); /* for the other thread to start waiting; when it is late, nothing is tested */
    return quick_load(ret_library, image, options, values, count, library_options, library_values,
                      library_count);
}

static void *get_beside(void *fixture)
{
    while (!atomic_load(&loading))
        usleep(100);
    atomic_store(&asked, true);
    return get(fixture, wanted);
}

/* Whether both got the same. */
static bool get_together(struct fixture *fixture, const char *text)
{
    struct cached *first;
    pthread_t thread;
    void *second;

    wanted = text;
    atomic_store(&loading, false);
    atomic_store(&asked, false);
    quick_load = driver.cuLibraryLoadData;
    driver.cuLibraryLoadData = slow_load;
    assert_int_equal(pthread_create(&thread, NULL, get_beside, fixture), 0);
    first = get(fixture, text);
    pthread_join(thread, &second);
    driver.cuLibraryLoadData = quick_load;
    module_cache_put(cache_of(fixture), first);
    module_cache_put(cache_of(fixture), second);
    return first == second;
}

static void clients_that_start_together_load_once(void **state)
{
    assert_true(get_together(*state, plain));
    assert_string_equal(fake_trace(), "load l1; ");
}

/* The second waits for the first, which finds out that they cannot share. */
static void clients_that_start_together_load_their_own_variables(void **state)
{
    assert_false(get_together(*state, variable));
    assert_string_equal(fake_trace(), "load l1; load l2; ");
}

/* ---- bundles ---- */

#define EMPTY                                                           \
    {                                                                   \
        .magic = IMAGE_CONTAINER_MAGIC, .version = 1, .header_size = 16 \
    }

static const struct image_container bundle[3] = {EMPTY, EMPTY, EMPTY};

static CUresult load_bundle(CUlibrary *ret_library, const void *image, CUjit_option *options,
                            void **values, unsigned count, CUlibraryOption *library_options,
                            void **library_values, unsigned library_count)
{
    const struct image_wrapper *wrapper = image;

    assert_int_equal(wrapper->magic, IMAGE_WRAPPER_MAGIC);
    assert_int_equal(wrapper->version, 2);
    assert_ptr_equal(wrapper->linked, &bundle[0]);
    assert_ptr_equal(wrapper->inputs[0], &bundle[1]);
    assert_ptr_equal(wrapper->inputs[1], &bundle[2]);
    assert_null(wrapper->inputs[2]);
    return quick_load(ret_library, image, options, values, count, library_options, library_values,
                      library_count);
}

static void the_driver_gets_the_parts_of_a_bundle(void **state)
{
    struct fixture *fixture = *state;
    struct stored_image *image = fixture_image(fixture, plain);
    struct library *library = library_create(image, NULL, 0);

    stored_image_unref(image);
    library->code = (struct compiled_image){.bytes = bundle, .size = sizeof(bundle)};
    quick_load = driver.cuLibraryLoadData;
    driver.cuLibraryLoadData = load_bundle;
    assert_int_equal(library_load(library), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "load l1; ");
    library_destroy(library);
}

/* ---- libraries with variables ---- */

/* The one variable of every library, and what the driver was asked to do with it. */
static uint32_t counter;
static unsigned writes;

static CUresult get_counter(CUdeviceptr *ret_address, size_t *ret_size, CUlibrary library,
                            const char *name)
{
    *ret_address = (uintptr_t)&counter;
    *ret_size = sizeof(counter);
    return strcmp(name, "counter") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult copy_now(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    writes += dst == (uintptr_t)&counter;
    memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size);
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream)
{
    return CUDA_SUCCESS;
}

static void have_a_counter(void)
{
    driver.cuLibraryGetGlobal = get_counter;
    driver.cuMemcpyAsync = copy_now;
    driver.cuStreamSynchronize = synchronize;
    counter = 5;
    writes = 0;
}

static void variables_have_one_client_at_a_time(void **state)
{
    struct cached *first = get(*state, variable), *second = get(*state, variable);

    assert_ptr_not_equal(first, second);
    assert_true(cached_is_shared(first));
    assert_string_equal(fake_trace(), "load l1; load l2; ");
    module_cache_put(cache_of(*state), second);
    module_cache_put(cache_of(*state), first);
    assert_ptr_equal(get(*state, variable), second);
    assert_ptr_equal(get(*state, variable), first);
    assert_string_equal(fake_trace(), "");
    module_cache_put(cache_of(*state), second);
    module_cache_put(cache_of(*state), first);
}

/* No kernel writes to them, so they are neither recorded nor restored. */
static void what_compilers_add_is_for_all(void **state)
{
    const char *text = PTX ".global .align 1 .b8 $str[3] = {104, 105};\n"
                           ".global .align 1 .b8 _ZN8INTERNAL4cuda3std3__45__cpo3endE[1];\n" ENTRY;
    struct cached *first = get(*state, text), *second = get(*state, text);

    have_a_counter();
    assert_ptr_equal(first, second);
    assert_false(cached_has_variables(first));
    assert_false(cached_has_state(first));
    query(*state, first);
    module_cache_put(cache_of(*state), first);
    module_cache_put(cache_of(*state), second);
    assert_int_equal(writes, 0);
    assert_string_equal(fake_trace(), "load l1; ");
    first = get(*state, variable);
    assert_true(cached_has_variables(first));
    module_cache_put(cache_of(*state), first);
}

static void the_next_client_finds_what_the_first_found(void **state)
{
    struct cached *cached = get(*state, variable);

    have_a_counter();
    query(*state, cached);
    counter = 7;
    query(*state, cached);
    assert_int_equal(writes, 0);
    module_cache_put(cache_of(*state), cached);
    assert_int_equal(counter, 5);
    counter = 9; /* not by a client */
    assert_ptr_equal(get(*state, variable), cached);
    query(*state, cached);
    module_cache_put(cache_of(*state), cached);
    assert_int_equal(counter, 5);
    assert_int_equal(writes, 2);
}

static void some_copies_stay_when_no_client_is_left(void **state)
{
    struct fixture *fixture = *state;
    struct module_cache *cache = cache_of(fixture);
    struct cached *copies[MODULE_CACHE_COPIES_KEPT + 2], *shared = get(fixture, plain);

    have_a_counter();
    for (unsigned i = 0; i < MODULE_CACHE_COPIES_KEPT + 2; i++)
        copies[i] = get(fixture, variable);
    for (unsigned i = 0; i < MODULE_CACHE_COPIES_KEPT + 1; i++)
        module_cache_put(cache, copies[i]);
    module_cache_put(cache, shared);
    fake_trace();
    module_cache_trim(cache, NULL); /* another device's */
    assert_string_equal(fake_trace(), "");
    module_cache_trim(cache, &fixture->server.devices.device[0]);
    assert_string_equal(unload(cache), "unload l2; ");
    assert_ptr_equal(get(fixture, variable), copies[1]);
    assert_ptr_equal(get(fixture, plain), shared);
    module_cache_put(cache, copies[1]);
    module_cache_put(cache, copies[MODULE_CACHE_COPIES_KEPT + 1]);
    module_cache_put(cache, shared);
}

static void libraries_whose_variables_are_not_found_are_not_shared(void **state)
{
    const char *text = PTX ".visible .global .align 4 .u32 other;\n" ENTRY;
    struct cached *cached = get(*state, text);

    have_a_counter();
    query(*state, cached);
    assert_false(cached_is_shared(cached));
    fake_trace();
    module_cache_put(cache_of(*state), cached);
    assert_string_equal(unload(cache_of(*state)), "unload l1; ");
}

static CUresult fail_to_copy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void libraries_that_cannot_be_restored_are_dropped(void **state)
{
    struct cached *cached = get(*state, variable);

    have_a_counter();
    query(*state, cached);
    driver.cuMemcpyAsync = fail_to_copy;
    module_cache_put(cache_of(*state), cached);
    cached = get(*state, variable);
    assert_non_null(strstr(fake_trace(), "load l2; "));
    module_cache_put(cache_of(*state), cached);
}

/* Kernels of a client that unloads a library may still run. */
static void unloaded_libraries_wait_for_the_clients_end(void **state)
{
    struct cached *first = get(*state, variable), *second;
    struct list parked;

    list_init(&parked);
    module_cache_park(cache_of(*state), first, &parked);
    second = get(*state, variable);
    assert_ptr_not_equal(first, second);
    module_cache_put_parked(cache_of(*state), &parked);
    assert_true(list_empty(&parked));
    assert_ptr_equal(get(*state, variable), first);
    module_cache_put(cache_of(*state), second);
    module_cache_put(cache_of(*state), first);
}

static void few_unloaded_libraries_wait(void **state)
{
    struct list parked;

    list_init(&parked);
    for (unsigned i = 0; i < MODULE_CACHE_PARKED_MAX; i++)
        module_cache_park(cache_of(*state), get(*state, variable), &parked);
    fake_trace();
    module_cache_park(cache_of(*state), get(*state, variable), &parked);
    assert_string_equal(unload(cache_of(*state)), "load l65; unload l65; ");
    module_cache_put_parked(cache_of(*state), &parked);
}

static void libraries_that_print_are_not_shared(void **state)
{
    const char *text = PTX ".extern .func (.param .b32 r) vprintf\n;\n"
                           ".global .align 1 .b8 $str[3] = {104, 105};\n" ENTRY;
    struct cached *cached = get(*state, text);

    assert_false(cached_is_shared(cached));
    module_cache_put(cache_of(*state), cached);
    assert_string_equal(unload(cache_of(*state)), "load l1; unload l1; ");
}

/* A client has one library on two devices, and the module that is destroyed last takes it along. */
static void a_library_is_joined(void **state)
{
    struct fixture *fixture = *state;
    struct cached *first = get(fixture, managed), *second = NULL;

    assert_false(cached_is_shared(first));
    assert_int_equal(module_cache_join(first, &fixture->server.devices.device[1], &second),
                     CUDA_SUCCESS);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(cached_library(first), cached_library(second));
    assert_ptr_not_equal(cached_kernels(first), cached_kernels(second));
    assert_false(cached_is_shared(second));
    assert_true(cached_has_state(second));
    module_cache_put(cache_of(fixture), first);
    assert_string_equal(unload(cache_of(fixture)), "load l1; ");
    module_cache_put(cache_of(fixture), second);
    assert_string_equal(unload(cache_of(fixture)), "unload l1; ");
}

static void other_options_make_another_library(void **state)
{
    struct cached *first = get(*state, plain), *second = NULL;

    assert_int_equal(try_get(*state, plain, 2, &second), CUDA_SUCCESS);
    assert_ptr_not_equal(first, second);
    module_cache_put(cache_of(*state), first);
    module_cache_put(cache_of(*state), second);
}

static void failed_loads_are_not_kept(void **state)
{
    struct cached *cached = NULL;

    fake.refusal = CUDA_ERROR_INVALID_PTX;
    assert_int_equal(try_get(*state, plain, 3, &cached), CUDA_ERROR_INVALID_PTX);
    assert_null(cached);
    cached = get(*state, plain);
    assert_string_equal(fake_trace(), "load l1; load l1; ");
    module_cache_put(cache_of(*state), cached);
}

/* NVIDIA's driver finds errors in PTX text after it has loaded it. */
static CUresult fail_to_compile(CUmodule *ret_module, CUlibrary library)
{
    return CUDA_ERROR_INVALID_PTX;
}

static void libraries_that_do_not_compile_are_queued_for_unload(void **state)
{
    struct cached *cached = NULL;

    driver.cuLibraryGetModule = fail_to_compile;
    assert_int_equal(try_get(*state, plain, 3, &cached), CUDA_ERROR_INVALID_PTX);
    assert_string_equal(fake_trace(), "load l1; ");
    assert_string_equal(unload(cache_of(*state)), "unload l1; ");
}

static void the_longest_idle_library_is_evicted_first(void **state)
{
    struct cached *cached[3];
    char text[3][sizeof(plain) + 8];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(text[i], sizeof(text[i]), "%s// %u\n", plain, i);
        cached[i] = get(*state, text[i]);
    }
    cache_of(*state)->idle_bytes_max = strlen(text[0]);
    fake_trace();
    module_cache_put(cache_of(*state), cached[1]);
    module_cache_put(cache_of(*state), get(*state, text[1]));
    assert_string_equal(fake_trace(), "");
    module_cache_put(cache_of(*state), cached[2]);
    assert_string_equal(unload(cache_of(*state)), "unload l3; ");
    module_cache_put(cache_of(*state), cached[0]);
    assert_string_equal(unload(cache_of(*state)), "unload l1; ");
}

/* However few bytes their images have. */
static void so_many_idle_libraries_are_kept(void **state)
{
    struct cached *cached[3];
    char text[3][sizeof(plain) + 8];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(text[i], sizeof(text[i]), "%s// %u\n", plain, i);
        cached[i] = get(*state, text[i]);
    }
    cache_of(*state)->idle_count_max = 2;
    fake_trace();
    module_cache_put(cache_of(*state), cached[0]);
    module_cache_put(cache_of(*state), cached[1]);
    module_cache_put(cache_of(*state), get(*state, text[0]));
    assert_string_equal(fake_trace(), "");
    module_cache_put(cache_of(*state), cached[2]);
    assert_string_equal(unload(cache_of(*state)), "unload l2; ");
    assert_int_equal(cache_of(*state)->idle_count, 2);
}

static uint64_t hash_of(const char *text)
{
    return hash_bytes(text, strlen(text));
}

/* The hash takes every fourth word together, and its multiplier is odd, so any change of one of
 * them can be undone by the next. `at` is that of a fourth one. */
static void forge(const char *text, size_t at, char *ret_text)
{
    const size_t lane = 24, step = 32;
    uint64_t before, first, second, factor = 0x9e3779b97f4a7c15u;
    uint64_t ours = 3, theirs = ours;

    strcpy(ret_text, text);
    memcpy(&first, text + at, 8);
    first ^= 1;
    memcpy(ret_text + at, &first, 8);
    for (size_t i = lane; i <= at; i += step) {
        memcpy(&before, text + i, 8);
        ours = (ours ^ before) * factor;
        ours ^= ours >> 29;
        memcpy(&before, ret_text + i, 8);
        theirs = (theirs ^ before) * factor;
        theirs ^= theirs >> 29;
    }
    memcpy(&second, text + at + step, 8);
    second ^= ours ^ theirs;
    memcpy(ret_text + at + step, &second, 8);
}

static void images_with_the_same_hash_are_told_apart(void **state)
{
    char text[sizeof(plain)];
    struct cached *first = get(*state, plain), *second = NULL;

    forge(plain, 56, text);
    assert_int_equal(strlen(text), strlen(plain));
    assert_string_not_equal(text, plain);
    assert_int_equal(hash_of(text), hash_of(plain));
    assert_int_equal(try_get(*state, text, 3, &second), CUDA_SUCCESS);
    assert_ptr_not_equal(first, second);
    assert_false(cached_is_shared(second));
    assert_string_equal(fake_trace(), "load l1; load l2; ");
    module_cache_put(cache_of(*state), second);
    assert_string_equal(unload(cache_of(*state)), "unload l2; ");
    module_cache_put(cache_of(*state), first);
}

static void libraries_in_use_stay(void **state)
{
    struct cached *cached = get(*state, plain);

    cache_of(*state)->idle_bytes_max = 0;
    module_cache_put(cache_of(*state), get(*state, plain));
    assert_string_equal(fake_trace(), "load l1; ");
    module_cache_put(cache_of(*state), cached);
    assert_string_equal(unload(cache_of(*state)), "unload l1; ");
}

static void it_can_be_switched_off(void **state)
{
    cache_of(*state)->enabled = false;
    module_cache_put(cache_of(*state), get(*state, plain));
    module_cache_put(cache_of(*state), get(*state, plain));
    assert_string_equal(unload(cache_of(*state)), "load l1; load l2; unload l1; unload l2; ");
}

static bool has_variables(const char *text)
{
    struct image_facts facts;

    image_facts_read(text, strlen(text), 90, &facts);
    image_facts_fini(&facts);
    return facts.has_variables;
}

static void variables_are_found(void **state)
{
    (void)state;
    assert_false(has_variables(plain));
    assert_true(has_variables(variable));
    assert_true(has_variables(PTX ".const .align 4 .u32 table[2];\n" ENTRY));
    assert_true(has_variables(PTX ".global .texref t;\n" ENTRY));
    assert_false(has_variables(PTX ".visible .entry k()\n{\nld.const.u32 %r1, [a];\n}\n"));
    assert_true(has_variables("\177ELF cut"));
}

/* ---- the code cache ---- */

static bool is_never_busy(void *context)
{
    return false;
}

static bool is_always_busy(void *context)
{
    return true;
}

static CUresult preload(struct fixture *fixture, const char *text, const char *kernel,
                        bool (*is_busy)(void *context))
{
    static const uint64_t options[2] = {CU_JIT_OPTIMIZATION_LEVEL, 3};
    const struct code_entry entry = {
        .origin.owner = 1,
        .image_size = strlen(text),
        .image = text,
        .options_size = sizeof(options),
        .options = options,
    };
    const struct code_kernels kernels = {
        .devices = 1,
        .count = 1,
        .names_size = (uint32_t)strlen(kernel) + 1,
        .names = (char *)kernel,
    };
    const struct preload_guard guard = {.is_busy = is_busy};

    return module_cache_preload(cache_of(fixture), &fixture->server.devices.device[0], &entry,
                                &kernels, &guard);
}

static void a_preloaded_library_is_there(void **state)
{
    static const char *const texts[] = {plain, variable};

    have_a_counter();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(preload(*state, texts[i], "7", is_never_busy), CUDA_SUCCESS);
        assert_int_equal(module_cache_preloads_used(cache_of(*state)), i);
        fake_trace();
        struct cached *cached = get(*state, texts[i]);
        assert_null(strstr(fake_trace(), "load"));
        assert_non_null(kernel_table_find(cached_kernels(cached), "7"));
        assert_int_equal(module_cache_preloads_used(cache_of(*state)), i + 1);
        module_cache_put(cache_of(*state), cached);
    }
}

/* The image is found by programs of its user only; others have to send it. */
static void a_preloaded_image_is_its_users(void **state)
{
    struct fixture *fixture = *state;
    char *text = malloc(IMAGE_KEY_MIN + sizeof(plain));

    memset(text, ' ', IMAGE_KEY_MIN);
    strcpy(text + IMAGE_KEY_MIN, plain);
    size_t size = strlen(text);
    uint64_t key = image_key(text, size);
    assert_int_equal(preload(fixture, text, "7", is_never_busy), CUDA_SUCCESS);
    assert_null(image_store_find(&cache_of(fixture)->images, key, size, 2));
    struct stored_image *image = image_store_find(&cache_of(fixture)->images, key, size, 1);
    assert_non_null(image);
    stored_image_unref(image);
    free(text);
}

static void nothing_is_asked_of_the_driver_while_clients_work(void **state)
{
    assert_int_equal(preload(*state, plain, "7", is_always_busy), CUDA_SUCCESS);
    struct cached *cached = get(*state, plain);
    assert_null(kernel_table_find(cached_kernels(cached), "7"));
    module_cache_put(cache_of(*state), cached);
}

static void what_is_no_image_is_not_preloaded(void **state)
{
    assert_int_equal(preload(*state, "not an image", "7", is_never_busy), CUDA_ERROR_INVALID_IMAGE);
    assert_string_equal(fake_trace(), "");
}

static void libraries_are_saved_once_their_kernels_are_known(void **state)
{
    struct cached *cached = get(*state, plain);
    struct known_kernel kernel = {.facts = {.name = "k"}};
    struct unsaved_library library;

    assert_false(module_cache_next_unsaved(cache_of(*state), &library));
    assert_non_null(kernel_table_add(cached_kernels(cached), &kernel));
    assert_true(module_cache_next_unsaved(cache_of(*state), &library));
    assert_string_equal(library.kernels.names, "k");
    assert_int_equal(library.image->size, strlen(plain));
    unsaved_library_fini(&library);
    assert_false(module_cache_next_unsaved(cache_of(*state), &library));
    kernel.facts.name = "l";
    assert_non_null(kernel_table_add(cached_kernels(cached), &kernel));
    assert_true(module_cache_next_unsaved(cache_of(*state), &library));
    assert_int_equal(library.kernels.count, 2);
    unsaved_library_fini(&library);
    module_cache_put(cache_of(*state), cached);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_same_image_is_loaded_once),
        CASE(clients_that_start_together_load_once),
        CASE(clients_that_start_together_load_their_own_variables),
        CASE(the_driver_gets_the_parts_of_a_bundle),
        CASE(variables_have_one_client_at_a_time),
        CASE(what_compilers_add_is_for_all),
        CASE(the_next_client_finds_what_the_first_found),
        CASE(some_copies_stay_when_no_client_is_left),
        CASE(libraries_whose_variables_are_not_found_are_not_shared),
        CASE(libraries_that_cannot_be_restored_are_dropped),
        CASE(unloaded_libraries_wait_for_the_clients_end),
        CASE(few_unloaded_libraries_wait),
        CASE(libraries_that_print_are_not_shared),
        CASE(a_library_is_joined),
        CASE(other_options_make_another_library),
        CASE(failed_loads_are_not_kept),
        CASE(libraries_that_do_not_compile_are_queued_for_unload),
        CASE(the_longest_idle_library_is_evicted_first),
        CASE(so_many_idle_libraries_are_kept),
        CASE(images_with_the_same_hash_are_told_apart),
        CASE(libraries_in_use_stay),
        CASE(it_can_be_switched_off),
        CASE(variables_are_found),
        CASE(a_preloaded_library_is_there),
        CASE(a_preloaded_image_is_its_users),
        CASE(nothing_is_asked_of_the_driver_while_clients_work),
        CASE(what_is_no_image_is_not_preloaded),
        CASE(libraries_are_saved_once_their_kernels_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
