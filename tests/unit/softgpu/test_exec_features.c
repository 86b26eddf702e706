/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The execution model, feature by feature, with what nvcc makes of features.cu: as usual and with
 * -G.
 */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

#define RUN(machine, kernel, blocks, threads, ...)                                        \
    do {                                                                                  \
        CUresult run_result =                                                             \
            machine_launch(machine, kernel, blocks, threads, 0, (void *[]){__VA_ARGS__}); \
        if (run_result != CUDA_SUCCESS)                                                   \
            fail_msg("%s: %d: %s", kernel, run_result, (machine)->message);               \
    } while (0)

static struct machine *start(void **state)
{
    return machine_create(*state);
}

struct record {
    float scale;
    int offsets[3];
    double bias;
};

static void test_structs(void **state)
{
    struct machine *machine = start(state);
    struct record record = {2, {1, 2, 3}, 4.5};
    float *out = machine_memory(machine, 64 * 4);
    RUN(machine, "structs", 1, 64, &out, &record);
    for (int i = 0; i < 64; i++)
        assert_true(out[i] == 2 * i + 2 + 4.5f + (1 + (i & 3)));
    machine_destroy(machine);
}

static void test_pointers(void **state)
{
    struct machine *machine = start(state);
    int *out = machine_memory(machine, 40 * 4);
    RUN(machine, "pointers", 1, 40, &out);
    for (int i = 0; i < 40; i++)
        assert_int_equal(out[i], (i & 1 ? i + 1 : 2 * i) + 7);
    machine_destroy(machine);
}

static void test_recursion(void **state)
{
    static const int fibonacci[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    struct machine *machine = start(state);
    int *out = machine_memory(machine, 64 * 4);
    RUN(machine, "recursion", 1, 64, &out);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], fibonacci[i % 12]);
    machine_destroy(machine);
}

static void test_local_array(void **state)
{
    struct machine *machine = start(state);
    int n = 5;
    int *out = machine_memory(machine, 64 * 4);
    RUN(machine, "local_array", 1, 64, &out, &n);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], ((n + i) & 15) * i);
    machine_destroy(machine);
}

static void test_choices(void **state)
{
    struct machine *machine = start(state);
    int n = 1234;
    const int expected[9] = {n * 3, n ^ 7, n << 3, n - 100, n / 3, n % 5, ~n, n * n, 0};
    int *out = machine_memory(machine, 64 * 4);
    RUN(machine, "choose", 1, 64, &out, &n);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], expected[i % 9]);
    machine_destroy(machine);
}

static void test_votes(void **state)
{
    struct machine *machine = start(state);
    unsigned *out = machine_memory(machine, 32 * 8 * 4);
    RUN(machine, "votes", 1, 32, &out);
    for (unsigned i = 0; i < 32; i++, out += 8) {
        unsigned first = i / 5 * 5, count = first == 30 ? 2 : 5;
        assert_int_equal(out[0], 0x55555555);
        assert_int_equal(out[1], ((1u << count) - 1) << first);
        assert_int_equal(out[2], 31 * 16);
        assert_int_equal(out[3], (i & ~7u) | ((i + 1) & 7));
        assert_int_equal(out[4], i < 3 ? i : i - 3);
        assert_int_equal(out[5], i ^ 5);
        assert_int_equal(out[6], i < 13 ? 0x1249 : 0);
        assert_int_equal(out[7], 3);
    }
    machine_destroy(machine);
}

static void test_atomics(void **state)
{
    struct machine *machine = start(state);
    unsigned *u = machine_memory(machine, 64);
    int *s = machine_memory(machine, 64);
    unsigned long long *l = machine_memory(machine, 8);
    float *f = machine_memory(machine, 4);
    double *d = machine_memory(machine, 8);
    RUN(machine, "atomics", 20, 100, &u, &s, &l, &f, &d);
    unsigned xor = 0;
    for (unsigned i = 0; i < 2000; i++)
        xor ^= i;
    assert_int_equal(u[0], 2000);
    assert_int_equal(u[1], 1999);
    assert_int_equal(u[2], 0);
    assert_int_equal(u[3], xor);
    assert_int_equal(u[4], 6000);
    assert_int_equal(s[0], -1999);
    assert_true(*l == 2000ull << 33);
    assert_true(*f == 2000 && *d == 1000);
    machine_destroy(machine);
}

static void test_lock(void **state)
{
    struct machine *machine = start(state);
    int *word = machine_memory(machine, 4);
    int *total = machine_memory(machine, 4);
    RUN(machine, "lock", 4, 48, &word, &total);
    assert_int_equal(*total, 4 * 48);
    machine_destroy(machine);
}

static void test_rendezvous(void **state)
{
    struct machine *machine = start(state);
    int *arrived = machine_memory(machine, 4);
    int *out = machine_memory(machine, 24 * 4);
    RUN(machine, "rendezvous", 24, 64, &arrived, &out);
    for (int i = 0; i < 24; i++)
        assert_int_equal(out[i], 24);
    machine_destroy(machine);
}

static void test_barriers(void **state)
{
    struct machine *machine = start(state);
    int *out = machine_memory(machine, 2 * 100 * 4);
    RUN(machine, "barriers", 1, 100, &out);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(out[2 * i], 34);
        assert_int_equal(out[2 * i + 1], 3);
    }
    machine_destroy(machine);
}

static void test_print(void **state)
{
    struct machine *machine = start(state);
    int n = 64;
    RUN(machine, "print", 1, 64, &n);
    assert_string_equal(machine->printed, "thread 0 of 64:  0.00 text a 123456789abc %|64  |\n"
                                          "thread 1 of 64:  1.50 text b 123456789abc %|64  |\n");
    machine_destroy(machine);
}

static void test_assert(void **state)
{
    struct machine *machine = start(state);
    int n = 6;
    RUN(machine, "check", 1, 32, &n);
    n = 5;
    assert_int_equal(machine_launch(machine, "check", 1, 1, 0, (void *[]){&n}), CUDA_ERROR_ASSERT);
    assert_non_null(
        strstr(machine->printed, "block: [0,0,0], thread: [0,0,0] Assertion `n > 5` failed."));
    machine_destroy(machine);
}

static void test_heap(void **state)
{
    struct machine *machine = start(state);
    int **out = machine_memory(machine, 32 * 8);
    RUN(machine, "heap", 1, 32, &out);
    for (int i = 0; i < 32; i++) {
        bool kept = sg_space_allows(machine->space, (uintptr_t)out[i], 64, SG_READ);
        assert_int_equal(kept, !(i & 1));
        if (kept)
            assert_int_equal(out[i][15], 15 + i);
    }
    machine_destroy(machine);
}

/* ---- Faults ---- */

static void expect_fault(struct machine *machine, CUresult result, CUresult expected,
                         const char *kernel, const char *words)
{
    assert_int_equal(result, expected);
    assert_non_null(strstr(machine->message, kernel));
    assert_non_null(strstr(machine->message, words));
    assert_non_null(strstr(machine->message, "PTX line"));
}

static void test_illegal_address(void **state)
{
    struct machine *machine = start(state);
    int *memory = machine_memory(machine, 64);
    int *beyond = memory + 16;
    CUresult result = machine_launch(machine, "store_at", 3, 1, 0, (void *[]){&beyond});
    expect_fault(machine, result, CUDA_ERROR_ILLEGAL_ADDRESS, "kernel store_at",
                 "an illegal write of 4 bytes");
    int *odd = (int *)((char *)memory + 2);
    result = machine_launch(machine, "store_at", 1, 1, 0, (void *[]){&odd});
    expect_fault(machine, result, CUDA_ERROR_MISALIGNED_ADDRESS, "thread (0,0,0)", "misaligned");
    RUN(machine, "store_at", 1, 1, &memory);
    assert_int_equal(*memory, 1);
    sg_space_remove(machine->space, (uintptr_t)memory);
    result = machine_launch(machine, "store_at", 1, 1, 0, (void *[]){&memory});
    assert_int_equal(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    machine_destroy(machine);
}

static void test_shared_beyond(void **state)
{
    struct machine *machine = start(state);
    int index = 8;
    CUresult result = machine_launch(machine, "shared_beyond", 1, 1, 0, (void *[]){&index});
    assert_int_equal(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    index = 7;
    RUN(machine, "shared_beyond", 1, 1, &index);
    machine_destroy(machine);
}

static void test_bad_shapes(void **state)
{
    struct machine *machine = start(state);
    int *memory = machine_memory(machine, 64);
    void *params[] = {&memory};
    assert_int_equal(machine_launch(machine, "store_at", 1, 1025, 0, params),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(machine_launch(machine, "store_at", 0, 1, 0, params),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(machine_launch(machine, "store_at", 1, 1, 1 << 20, params),
                     CUDA_ERROR_INVALID_VALUE);
    machine_destroy(machine);
}

/* A kernel that never ends is ended by the destruction of its engine, and its owner is told. */
static CUresult ending;

static void note_end(void *user, CUresult result, const char *message)
{
    ending = result;
}

static void test_abort(void **state)
{
    struct machine *machine = start(state);
    int *word = machine_memory(machine, 4);
    struct sg_launch launch = {
        .instance = machine->instance,
        .kernel = (unsigned)sg_module_find_kernel(machine->module, "forever"),
        .grid = {100, 1, 1},
        .block = {64, 1, 1},
        .params = &word,
        .params_size = 8,
        .space = machine->space,
        .done = note_end,
    };
    assert_int_equal(sg_engine_submit(machine->engine, &launch), CUDA_SUCCESS);
    sg_engine_abort(machine->engine, machine->space, CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_int_equal(ending, CUDA_ERROR_LAUNCH_TIMEOUT);
    RUN(machine, "store_at", 1, 1, &word);
    machine_destroy(machine);
}

#define BOTH(test)                                          \
    {#test, test, NULL, NULL, "features.ptx"},              \
    {                                                       \
#test " -G", test, NULL, NULL, "features_debug.ptx" \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_structs),       BOTH(test_pointers),
        BOTH(test_recursion),     BOTH(test_local_array),
        BOTH(test_choices),       BOTH(test_votes),
        BOTH(test_atomics),       BOTH(test_lock),
        BOTH(test_rendezvous),    BOTH(test_barriers),
        BOTH(test_print),         BOTH(test_assert),
        BOTH(test_heap),          BOTH(test_illegal_address),
        BOTH(test_shared_beyond), BOTH(test_bad_shapes),
        BOTH(test_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
