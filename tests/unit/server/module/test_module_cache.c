/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libraries clients share, and how long they stay.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "image_format.h"
#include "library.h"
#include "module_cases.h"

static const char managed[] =
    PTX ".visible .global .attribute(.managed) .align 4 .u32 counter = 5;\n" ENTRY;

static void the_same_image_is_loaded_once(void **state)
{
    struct cached *first = case_get(*state, PLAIN), *second = case_get(*state, PLAIN);

    assert_ptr_equal(first, second);
    assert_true(cached_is_shared(first));
    assert_string_equal(fake_trace(), "load l1; ");
    module_cache_put(case_cache(*state), first);
    module_cache_put(case_cache(*state), second);
    assert_ptr_equal(case_get(*state, PLAIN), first);
    assert_string_equal(fake_trace(), "");
    module_cache_put(case_cache(*state), first);
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
    return case_get(fixture, wanted);
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
    first = case_get(fixture, text);
    pthread_join(thread, &second);
    driver.cuLibraryLoadData = quick_load;
    module_cache_put(case_cache(fixture), first);
    module_cache_put(case_cache(fixture), second);
    return first == second;
}

static void clients_that_start_together_load_once(void **state)
{
    assert_true(get_together(*state, PLAIN));
    assert_string_equal(fake_trace(), "load l1; ");
}

/* The second waits for the first, which finds out that they cannot share. */
static void clients_that_start_together_load_their_own_variables(void **state)
{
    assert_false(get_together(*state, VARIABLE));
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
    struct stored_image *image = fixture_image(fixture, PLAIN);
    struct library *library = library_create(image, NULL, 0);

    stored_image_unref(image);
    library->code = (struct compiled_image){.bytes = bundle, .size = sizeof(bundle)};
    quick_load = driver.cuLibraryLoadData;
    driver.cuLibraryLoadData = load_bundle;
    assert_int_equal(library_load(library), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "load l1; ");
    library_destroy(library);
}

/* Kernels of a client that unloads a library may still run. */
static void unloaded_libraries_wait_for_the_clients_end(void **state)
{
    struct cached *first = case_get(*state, VARIABLE), *second;
    struct list parked;

    list_init(&parked);
    module_cache_park(case_cache(*state), first, &parked);
    second = case_get(*state, VARIABLE);
    assert_ptr_not_equal(first, second);
    module_cache_put_parked(case_cache(*state), &parked);
    assert_true(list_empty(&parked));
    assert_ptr_equal(case_get(*state, VARIABLE), first);
    module_cache_put(case_cache(*state), second);
    module_cache_put(case_cache(*state), first);
}

static void few_unloaded_libraries_wait(void **state)
{
    struct list parked;

    list_init(&parked);
    for (unsigned i = 0; i < MODULE_CACHE_PARKED_MAX; i++)
        module_cache_park(case_cache(*state), case_get(*state, VARIABLE), &parked);
    fake_trace();
    module_cache_park(case_cache(*state), case_get(*state, VARIABLE), &parked);
    assert_string_equal(case_unload(case_cache(*state)), "load l65; unload l65; ");
    module_cache_put_parked(case_cache(*state), &parked);
}

static void libraries_that_print_are_not_shared(void **state)
{
    const char *text = PTX ".extern .func (.param .b32 r) vprintf\n;\n"
                           ".global .align 1 .b8 $str[3] = {104, 105};\n" ENTRY;
    struct cached *cached = case_get(*state, text);

    assert_false(cached_is_shared(cached));
    module_cache_put(case_cache(*state), cached);
    assert_string_equal(case_unload(case_cache(*state)), "load l1; unload l1; ");
}

/* A client has one library on two devices, and the module that is destroyed last takes it along. */
static void a_library_is_joined(void **state)
{
    struct fixture *fixture = *state;
    struct cached *first = case_get(fixture, managed), *second = NULL;

    assert_false(cached_is_shared(first));
    assert_int_equal(module_cache_join(first, &fixture->server.devices.device[1], &second),
                     CUDA_SUCCESS);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(cached_library(first), cached_library(second));
    assert_ptr_not_equal(cached_kernels(first), cached_kernels(second));
    assert_false(cached_is_shared(second));
    assert_true(cached_has_state(second));
    module_cache_put(case_cache(fixture), first);
    assert_string_equal(case_unload(case_cache(fixture)), "load l1; ");
    module_cache_put(case_cache(fixture), second);
    assert_string_equal(case_unload(case_cache(fixture)), "unload l1; ");
}

static void other_options_make_another_library(void **state)
{
    struct cached *first = case_get(*state, PLAIN), *second = NULL;

    assert_int_equal(case_try_get(*state, PLAIN, 2, &second), CUDA_SUCCESS);
    assert_ptr_not_equal(first, second);
    module_cache_put(case_cache(*state), first);
    module_cache_put(case_cache(*state), second);
}

static void failed_loads_are_not_kept(void **state)
{
    struct cached *cached = NULL;

    fake.refusal = CUDA_ERROR_INVALID_PTX;
    assert_int_equal(case_try_get(*state, PLAIN, 3, &cached), CUDA_ERROR_INVALID_PTX);
    assert_null(cached);
    cached = case_get(*state, PLAIN);
    assert_string_equal(fake_trace(), "load l1; load l1; ");
    module_cache_put(case_cache(*state), cached);
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
    assert_int_equal(case_try_get(*state, PLAIN, 3, &cached), CUDA_ERROR_INVALID_PTX);
    assert_string_equal(fake_trace(), "load l1; ");
    assert_string_equal(case_unload(case_cache(*state)), "unload l1; ");
}

static void the_longest_idle_library_is_evicted_first(void **state)
{
    struct cached *cached[3];
    char text[3][sizeof(PLAIN) + 8];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(text[i], sizeof(text[i]), "%s// %u\n", PLAIN, i);
        cached[i] = case_get(*state, text[i]);
    }
    case_cache(*state)->idle_bytes_max = strlen(text[0]);
    fake_trace();
    module_cache_put(case_cache(*state), cached[1]);
    module_cache_put(case_cache(*state), case_get(*state, text[1]));
    assert_string_equal(fake_trace(), "");
    module_cache_put(case_cache(*state), cached[2]);
    assert_string_equal(case_unload(case_cache(*state)), "unload l3; ");
    module_cache_put(case_cache(*state), cached[0]);
    assert_string_equal(case_unload(case_cache(*state)), "unload l1; ");
}

/* However few bytes their images have. */
static void so_many_idle_libraries_are_kept(void **state)
{
    struct cached *cached[3];
    char text[3][sizeof(PLAIN) + 8];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(text[i], sizeof(text[i]), "%s// %u\n", PLAIN, i);
        cached[i] = case_get(*state, text[i]);
    }
    case_cache(*state)->idle_count_max = 2;
    fake_trace();
    module_cache_put(case_cache(*state), cached[0]);
    module_cache_put(case_cache(*state), cached[1]);
    module_cache_put(case_cache(*state), case_get(*state, text[0]));
    assert_string_equal(fake_trace(), "");
    module_cache_put(case_cache(*state), cached[2]);
    assert_string_equal(case_unload(case_cache(*state)), "unload l2; ");
    assert_int_equal(case_cache(*state)->idle_count, 2);
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
    char text[sizeof(PLAIN)];
    struct cached *first = case_get(*state, PLAIN), *second = NULL;

    forge(PLAIN, 56, text);
    assert_int_equal(strlen(text), strlen(PLAIN));
    assert_string_not_equal(text, PLAIN);
    assert_int_equal(hash_of(text), hash_of(PLAIN));
    assert_int_equal(case_try_get(*state, text, 3, &second), CUDA_SUCCESS);
    assert_ptr_not_equal(first, second);
    assert_false(cached_is_shared(second));
    assert_string_equal(fake_trace(), "load l1; load l2; ");
    module_cache_put(case_cache(*state), second);
    assert_string_equal(case_unload(case_cache(*state)), "unload l2; ");
    module_cache_put(case_cache(*state), first);
}

static void libraries_in_use_stay(void **state)
{
    struct cached *cached = case_get(*state, PLAIN);

    case_cache(*state)->idle_bytes_max = 0;
    module_cache_put(case_cache(*state), case_get(*state, PLAIN));
    assert_string_equal(fake_trace(), "load l1; ");
    module_cache_put(case_cache(*state), cached);
    assert_string_equal(case_unload(case_cache(*state)), "unload l1; ");
}

static void the_cache_can_be_switched_off(void **state)
{
    case_cache(*state)->enabled = false;
    module_cache_put(case_cache(*state), case_get(*state, PLAIN));
    module_cache_put(case_cache(*state), case_get(*state, PLAIN));
    assert_string_equal(case_unload(case_cache(*state)),
                        "load l1; load l2; unload l1; unload l2; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODULE_CASE(the_same_image_is_loaded_once),
        MODULE_CASE(clients_that_start_together_load_once),
        MODULE_CASE(clients_that_start_together_load_their_own_variables),
        MODULE_CASE(the_driver_gets_the_parts_of_a_bundle),
        MODULE_CASE(unloaded_libraries_wait_for_the_clients_end),
        MODULE_CASE(few_unloaded_libraries_wait),
        MODULE_CASE(libraries_that_print_are_not_shared),
        MODULE_CASE(a_library_is_joined),
        MODULE_CASE(other_options_make_another_library),
        MODULE_CASE(failed_loads_are_not_kept),
        MODULE_CASE(libraries_that_do_not_compile_are_queued_for_unload),
        MODULE_CASE(the_longest_idle_library_is_evicted_first),
        MODULE_CASE(so_many_idle_libraries_are_kept),
        MODULE_CASE(images_with_the_same_hash_are_told_apart),
        MODULE_CASE(libraries_in_use_stay),
        MODULE_CASE(the_cache_can_be_switched_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
