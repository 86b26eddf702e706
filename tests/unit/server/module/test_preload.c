/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that the code cache brings, and what it saves. */
#include <stdlib.h>
#include <string.h>

#include "image_key.h"
#include "library.h"
#include "module_cases.h"
#include "module_keep.h"

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

    return module_cache_preload(case_cache(fixture), &fixture->server.devices.device[0], &entry,
                                &kernels, &guard);
}

static void a_preloaded_library_is_there(void **state)
{
    static const char *const texts[] = {PLAIN, VARIABLE};

    case_have_a_counter();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(preload(*state, texts[i], "7", is_never_busy), CUDA_SUCCESS);
        assert_int_equal(module_cache_preloads_used(case_cache(*state)), i);
        fake_trace();
        struct cached *cached = case_get(*state, texts[i]);
        assert_null(strstr(fake_trace(), "load"));
        assert_non_null(kernel_table_find(cached_kernels(cached), "7"));
        assert_int_equal(module_cache_preloads_used(case_cache(*state)), i + 1);
        module_cache_put(case_cache(*state), cached);
    }
}

/* The image is found by programs of its user only; others have to send it. */
static void a_preloaded_image_is_its_users(void **state)
{
    struct fixture *fixture = *state;
    char *text = malloc(IMAGE_KEY_MIN + sizeof(PLAIN));

    memset(text, ' ', IMAGE_KEY_MIN);
    strcpy(text + IMAGE_KEY_MIN, PLAIN);
    size_t size = strlen(text);
    uint64_t key = image_key(text, size);
    assert_int_equal(preload(fixture, text, "7", is_never_busy), CUDA_SUCCESS);
    assert_null(image_store_find(&case_cache(fixture)->images, key, size, 2));
    struct stored_image *image = image_store_find(&case_cache(fixture)->images, key, size, 1);
    assert_non_null(image);
    stored_image_unref(image);
    free(text);
}

static void nothing_is_asked_of_the_driver_while_clients_work(void **state)
{
    assert_int_equal(preload(*state, PLAIN, "7", is_always_busy), CUDA_SUCCESS);
    struct cached *cached = case_get(*state, PLAIN);
    assert_null(kernel_table_find(cached_kernels(cached), "7"));
    module_cache_put(case_cache(*state), cached);
}

static void an_invalid_image_is_not_preloaded(void **state)
{
    assert_int_equal(preload(*state, "not an image", "7", is_never_busy), CUDA_ERROR_INVALID_IMAGE);
    assert_string_equal(fake_trace(), "");
}

static void libraries_are_saved_once_their_kernels_are_known(void **state)
{
    struct cached *cached = case_get(*state, PLAIN);
    struct known_kernel kernel = {.facts = {.name = "k"}};
    struct unsaved_library library;

    assert_false(module_cache_next_unsaved(case_cache(*state), &library));
    assert_non_null(kernel_table_add(cached_kernels(cached), &kernel));
    assert_true(module_cache_next_unsaved(case_cache(*state), &library));
    assert_string_equal(library.kernels.names, "k");
    assert_int_equal(library.image->size, strlen(PLAIN));
    unsaved_library_fini(&library);
    assert_false(module_cache_next_unsaved(case_cache(*state), &library));
    kernel.facts.name = "l";
    assert_non_null(kernel_table_add(cached_kernels(cached), &kernel));
    assert_true(module_cache_next_unsaved(case_cache(*state), &library));
    assert_int_equal(library.kernels.count, 2);
    unsaved_library_fini(&library);
    module_cache_put(case_cache(*state), cached);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODULE_CASE(a_preloaded_library_is_there),
        MODULE_CASE(a_preloaded_image_is_its_users),
        MODULE_CASE(nothing_is_asked_of_the_driver_while_clients_work),
        MODULE_CASE(an_invalid_image_is_not_preloaded),
        MODULE_CASE(libraries_are_saved_once_their_kernels_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
