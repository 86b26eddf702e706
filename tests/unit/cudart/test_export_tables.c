/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export tables: their sizes and empty slots, and the slots that do something.
 */
#include "fake_driver.h"

#include <stdint.h>

#define CUDART_INTERFACE "6bd5fb6c5bf4e74a8987d93912fd9df9"
#define CALLBACK_HOOKS "a094798c2e742e7493f20800200c0a66"
#define TOOLS_TLS "42d85a8123f6cb478298f6e78a3aecdc"
#define CONTEXT_CHECKS "263e88607cd2614392f6bbd5006dfa7e"
#define INTEGRITY_CHECK "d4082055bde6704b8d34ba123c66e1f2"
#define CONTEXT "21318c60971432488ca641ff7324c8f2"
#define FUNCTION "6e163fbeb958444d835ce182aff1991e"
#define CLUSTER "1734dc26800d47458726c0f1e7dd8bca"
#define COMPUTE_CACHE "da9151d33ae6cc41a5c04f26d533e328"

static void check_shape(const char *uuid, size_t words, size_t empty_slot)
{
    void *const *table = fake_table(uuid);

    assert_int_equal((uintptr_t)table[0], words * sizeof(void *));
    for (size_t i = 1; i < words; i++) {
        if (i == empty_slot)
            assert_null(table[i]);
        else
            assert_non_null(table[i]);
    }
    assert_ptr_equal(fake_table(uuid), table);
}

static void test_shapes(void **state)
{
    check_shape(CUDART_INTERFACE, 13, 10);
    check_shape(CALLBACK_HOOKS, 7, 0);
    check_shape(TOOLS_TLS, 3, 0);
    check_shape(CONTEXT_CHECKS, 15, 0);
    check_shape(INTEGRITY_CHECK, 3, 0);
    check_shape(CONTEXT, 93, 91);
    check_shape(FUNCTION, 99, 93);
    check_shape(CLUSTER, 17, 0);
    check_shape(COMPUTE_CACHE, 7, 0);
}

static void test_unknown_table(void **state)
{
    CUuuid id = {{0}};
    const void *table = &id;

    assert_int_equal(cudart_get_export_table(&table, &id), CUDA_ERROR_INVALID_VALUE);
    assert_null(table);
    assert_int_equal(cudart_get_export_table(NULL, &id), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cudart_get_export_table(&table, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void test_unknown_slots_are_not_supported(void **state)
{
    CUresult (*slot)(void *, void *) = fake_table(CONTEXT)[50];

    assert_int_equal(slot(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

static void test_primary_context(void **state)
{
    CUresult (*get)(CUcontext *, CUdevice) = fake_table(CUDART_INTERFACE)[2];
    CUcontext context = NULL;

    assert_int_equal(get(&context, 0), CUDA_SUCCESS);
    assert_ptr_equal(context, FAKE_CONTEXT);
    assert_int_equal(get(&context, 1), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(get(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_modules_of_old_runtimes(void **state)
{
    void *const *table = fake_table(CUDART_INTERFACE);
    CUresult (*load)(CUmodule *, const void *) = table[1];
    CUresult (*add)(CUmodule *, const void *, void *, void *, uint32_t) = table[6];
    CUresult (*add_container)(const void *, CUmodule *, void *, void *, uint32_t) = table[8];
    int image[3];
    CUmodule module = NULL;

    assert_int_equal(load(&module, &image[0]), CUDA_SUCCESS);
    assert_ptr_equal(fake_loaded, &image[0]);
    assert_int_equal(add(&module, &image[1], NULL, NULL, 0), CUDA_SUCCESS);
    assert_ptr_equal(fake_loaded, &image[1]);
    assert_int_equal(add_container(&image[2], &module, NULL, NULL, 0), CUDA_SUCCESS);
    assert_ptr_equal(fake_loaded, &image[2]);
    assert_non_null(module);
}

static void check_flags(void (*get)(uint32_t **, size_t *), size_t at_least)
{
    uint32_t *flags = NULL;
    size_t count = 0;

    get(&flags, &count);
    assert_true(count > at_least);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(flags[i], 0);
}

/* libcudart 13.0 refuses smaller arrays, and calls hooks whose flag is not zero. */
static void test_no_hook_is_wanted(void **state)
{
    check_flags(fake_table(CALLBACK_HOOKS)[2], 522);
    check_flags(fake_table(CALLBACK_HOOKS)[6], 13);
}

/* As libcudart lays a call out, in words; the second half of word 10 says that it ends. */
static const struct {
    CUdeviceptr *address;
} address_arguments;
static int status = 7;
static uint64_t correlation;

static struct {
    enum cudart_symbol symbol;
    unsigned calls, observed;
} seen_calls;

static void on_symbol(enum cudart_symbol symbol, const struct cudart_call *call)
{
    seen_calls.symbol = symbol;
    seen_calls.calls++;
    assert_ptr_equal(call->arguments, &address_arguments);
    assert_true(call->exits);
    assert_ptr_equal(call->result, &status);
}

static void on_any(const struct cudart_call *call)
{
    assert_ptr_equal(call->arguments, &address_arguments);
    seen_calls.observed++;
}

static void make_call(uint32_t id)
{
    void (*hook)(uint32_t, void *) = fake_table(CALLBACK_HOOKS)[1];
    uint64_t words[15] = {120,
                          0,
                          0,
                          0,
                          (uintptr_t)&correlation,
                          (uintptr_t)&status,
                          0,
                          (uintptr_t)&address_arguments,
                          0,
                          0,
                          id | 1ull << 32};

    hook(id, words);
}

static void test_calls_with_variables(void **state)
{
    void (*get)(uint32_t **, size_t *) = fake_table(CALLBACK_HOOKS)[2];
    uint32_t *flags;
    size_t count;

    cudart_watch_symbols(on_symbol);
    get(&flags, &count);
    assert_true(flags[39] && flags[53] && flags[350] && flags[count - 1]);
    assert_false(flags[1] || flags[211] || flags[352]);
    make_call(53);
    assert_int_equal(seen_calls.symbol, CUDART_SYMBOL_ADDRESS);
    make_call(40);
    assert_int_equal(seen_calls.symbol, CUDART_SYMBOL_COPY_FROM);
    make_call((uint32_t)count - 1);
    assert_int_equal(seen_calls.symbol, CUDART_SYMBOL_NODE);
    make_call(211);
    assert_int_equal(seen_calls.calls, 3);
}

static void test_calls_with_variables_beside_a_profiler(void **state)
{
    void (*get)(uint32_t **, size_t *) = fake_table(CALLBACK_HOOKS)[2];
    uint32_t *flags;
    size_t count;

    seen_calls.calls = seen_calls.observed = 0;
    cudart_observe(on_any);
    get(&flags, &count);
    assert_true(flags[211] && flags[39]);
    make_call(39);
    make_call(211);
    assert_int_equal(seen_calls.observed, 2);
    cudart_observe(NULL);
    assert_true(flags[39] && !flags[211]);
    make_call(39);
    assert_int_equal(seen_calls.observed, 2);
    assert_int_equal(seen_calls.calls, 2);
}

static void test_current_context(void **state)
{
    CUresult (*get)(CUcontext *) = fake_table(TOOLS_TLS)[2];
    CUcontext context = OTHER_CONTEXT;

    assert_int_equal(get(&context), CUDA_SUCCESS);
    assert_null(context);
    fake_current = FAKE_CONTEXT;
    assert_int_equal(get(&context), CUDA_SUCCESS);
    assert_ptr_equal(context, FAKE_CONTEXT);
}

static void test_contexts_are_not_wrapped(void **state)
{
    CUresult (*unwrap)(CUcontext, uint32_t *, CUcontext *) = fake_table(CONTEXT_CHECKS)[2];
    uint32_t (*mode)(void) = fake_table(CONTEXT_CHECKS)[3];
    uint32_t is_wrapped = 9;
    CUcontext real;

    assert_int_equal(unwrap(FAKE_CONTEXT, &is_wrapped, &real), CUDA_SUCCESS);
    assert_int_equal(is_wrapped, 0);
    assert_int_equal(mode(), 0);
}

static void test_context_numbers(void **state)
{
    CUresult (*get_device)(CUcontext, CUdevice *) = fake_table(CONTEXT)[3];
    CUresult (*get_id)(CUcontext, uint64_t *) = fake_table(CONTEXT)[4];
    uint64_t id = 0;
    CUdevice device = -1;

    assert_int_equal(get_device(OTHER_CONTEXT, &device), CUDA_SUCCESS);
    assert_int_equal(device, 1);
    assert_int_equal(get_id(FAKE_CONTEXT, &id), CUDA_SUCCESS);
    assert_int_equal(id, 77);
    assert_int_equal(get_id(OTHER_CONTEXT, &id), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(id, 77);
}

static void check_stream(CUstream stream, int per_thread, uint64_t expected)
{
    CUresult (*get_object)(CUcontext, CUstream, void **, int) = fake_table(CONTEXT)[51];
    CUresult (*get_id)(CUcontext, void *, uint64_t *) = fake_table(CONTEXT)[39];
    void *object = NULL;
    uint64_t id = 0;

    assert_int_equal(get_object(FAKE_CONTEXT, stream, &object, per_thread), CUDA_SUCCESS);
    assert_non_null(object);
    assert_int_equal(get_id(FAKE_CONTEXT, object, &id), CUDA_SUCCESS);
    assert_int_equal(id, expected);
}

static void test_stream_numbers(void **state)
{
    check_stream(NULL, 0, 1001);
    check_stream(CU_STREAM_LEGACY, 0, 1001);
    check_stream(NULL, 1, 1002);
    check_stream(CU_STREAM_PER_THREAD, 0, 1002);
    check_stream((CUstream)0x500, 0, 1000 + 0x500);
}

static void add_up(void *user, CUfunction function)
{
    *(uintptr_t *)user += (uintptr_t)function;
}

static void test_walk_over_functions(void **state)
{
    int (*for_each)(CUcontext, CUmodule, void (*)(void *, CUfunction), void *) =
        fake_table(FUNCTION)[7];
    uintptr_t sum = 0;

    assert_int_equal(for_each(FAKE_CONTEXT, (CUmodule)0x61, add_up, &sum), 2);
    assert_int_equal(sum, 0x51 + 0x52);
}

static void test_no_topology(void **state)
{
    CUresult (*get_topology)(uint8_t **, void **) = fake_table(CLUSTER)[4];
    uint8_t *clusters = NULL;
    void *handle = NULL;

    assert_int_equal(get_topology(&clusters, &handle), CUDA_ERROR_NOT_SUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shapes, fake_driver_setup),
        cmocka_unit_test_setup(test_unknown_table, fake_driver_setup),
        cmocka_unit_test_setup(test_unknown_slots_are_not_supported, fake_driver_setup),
        cmocka_unit_test_setup(test_primary_context, fake_driver_setup),
        cmocka_unit_test_setup(test_modules_of_old_runtimes, fake_driver_setup),
        cmocka_unit_test_setup(test_no_hook_is_wanted, fake_driver_setup),
        cmocka_unit_test_setup(test_calls_with_variables, fake_driver_setup),
        cmocka_unit_test_setup(test_calls_with_variables_beside_a_profiler, fake_driver_setup),
        cmocka_unit_test_setup(test_current_context, fake_driver_setup),
        cmocka_unit_test_setup(test_contexts_are_not_wrapped, fake_driver_setup),
        cmocka_unit_test_setup(test_context_numbers, fake_driver_setup),
        cmocka_unit_test_setup(test_stream_numbers, fake_driver_setup),
        cmocka_unit_test_setup(test_walk_over_functions, fake_driver_setup),
        cmocka_unit_test_setup(test_no_topology, fake_driver_setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
