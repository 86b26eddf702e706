/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole kernels, as nvcc compiles them, against the same thing in C.
 */
#include "machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUN(machine, kernel, blocks, threads, shared, ...)                                     \
    do {                                                                                       \
        CUresult run_result =                                                                  \
            machine_launch(machine, kernel, blocks, threads, shared, (void *[]){__VA_ARGS__}); \
        if (run_result != CUDA_SUCCESS)                                                        \
            fail_msg("%s: %d: %s", kernel, run_result, (machine)->message);                    \
    } while (0)

static float unit_float(uint64_t *state)
{
    return (float)(unit_random(state) % 2001) / 1000.0f - 1.0f;
}

static void test_vector_add(void **state)
{
    struct machine *machine = machine_create("basics.ptx");
    int n = 10007;
    uint64_t seed = 1;
    float *a = machine_memory(machine, n * sizeof(*a));
    float *b = machine_memory(machine, n * sizeof(*b));
    float *c = machine_memory(machine, n * sizeof(*c));
    for (int i = 0; i < n; i++) {
        a[i] = unit_float(&seed);
        b[i] = unit_float(&seed);
    }
    RUN(machine, "vector_add", (n + 127) / 128, 128, 0, &a, &b, &c, &n);
    for (int i = 0; i < n; i++)
        assert_true(c[i] == a[i] + b[i]);
    machine_destroy(machine);
}

static void test_matmul(void **state)
{
    struct machine *machine = machine_create("basics.ptx");
    int n = 64;
    uint64_t seed = 2;
    float *a = machine_memory(machine, n * n * sizeof(*a));
    float *b = machine_memory(machine, n * n * sizeof(*b));
    float *c = machine_memory(machine, n * n * sizeof(*c));
    for (int i = 0; i < n * n; i++) {
        a[i] = unit_float(&seed);
        b[i] = unit_float(&seed);
    }
    CUresult result = machine_launch_3d(machine, "matmul", (uint32_t[]){n / 16, n / 16, 1},
                                        (uint32_t[]){16, 16, 1}, 0, (void *[]){&a, &b, &c, &n});
    assert_int_equal(result, CUDA_SUCCESS);
    for (int row = 0; row < n; row++) {
        for (int column = 0; column < n; column++) {
            float sum = 0;
            for (int k = 0; k < n; k++)
                sum = fmaf(a[row * n + k], b[k * n + column], sum);
            assert_true(c[row * n + column] == sum);
        }
    }
    machine_destroy(machine);
}

static void test_reduction(void **state)
{
    struct machine *machine = machine_create("basics.ptx");
    int n = 100003, expected = 0;
    uint64_t seed = 3;
    int *values = machine_memory(machine, n * sizeof(*values));
    int *sum = machine_memory(machine, sizeof(*sum));
    for (int i = 0; i < n; i++) {
        values[i] = (int)(unit_random(&seed) % 1000);
        expected += values[i];
    }
    RUN(machine, "reduce_sum", 13, 256, 0, &values, &n, &sum);
    assert_int_equal(*sum, expected);
    machine_destroy(machine);
}

static void test_histogram(void **state)
{
    struct machine *machine = machine_create("basics.ptx");
    int n = 50001;
    uint64_t seed = 4;
    unsigned expected[256] = {0};
    unsigned char *bytes = machine_memory(machine, n);
    unsigned *counts = machine_memory(machine, sizeof(expected));
    for (int i = 0; i < n; i++) {
        bytes[i] = (unsigned char)unit_random(&seed);
        expected[bytes[i]]++;
    }
    RUN(machine, "histogram", 7, 192, 0, &bytes, &n, &counts);
    assert_memory_equal(counts, expected, sizeof(expected));
    machine_destroy(machine);
}

static void expect_force(const float *bodies, const float *force, int n, int i)
{
    double x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
        double dx = bodies[4 * j] - bodies[4 * i];
        double dy = bodies[4 * j + 1] - bodies[4 * i + 1];
        double dz = bodies[4 * j + 2] - bodies[4 * i + 2];
        double inverse = 1 / sqrt(dx * dx + dy * dy + dz * dz + 0.01);
        double scale = bodies[4 * j + 3] * inverse * inverse * inverse;
        x += dx * scale;
        y += dy * scale;
        z += dz * scale;
    }
    double size = fabs(x) + fabs(y) + fabs(z) + 1;
    assert_true(fabs(force[0] - x) < 1e-4 * size);
    assert_true(fabs(force[1] - y) < 1e-4 * size);
    assert_true(fabs(force[2] - z) < 1e-4 * size);
}

static void test_nbody(void **state)
{
    struct machine *machine = machine_create("basics.ptx");
    int n = 300;
    uint64_t seed = 5;
    float *bodies = machine_memory(machine, n * 16);
    float *forces = machine_memory(machine, n * 16);
    for (int i = 0; i < 4 * n; i++)
        bodies[i] = unit_float(&seed);
    RUN(machine, "nbody", (n + 63) / 64, 64, 64 * 16, &bodies, &forces, &n);
    for (int i = 0; i < n; i++)
        expect_force(bodies, forces + 4 * i, n, i);
    machine_destroy(machine);
}

static void test_divergence(void **state)
{
    struct machine *machine = machine_create("basics.ptx");
    int n = 1000;
    unsigned *start = machine_memory(machine, n * sizeof(*start));
    unsigned *steps = machine_memory(machine, n * sizeof(*steps));
    for (int i = 0; i < n; i++)
        start[i] = (unsigned)i + 1;
    RUN(machine, "collatz", (n + 95) / 96, 96, 0, &start, &steps, &n);
    for (int i = 0; i < n; i++) {
        unsigned count = 0;
        for (unsigned x = (unsigned)i + 1; x != 1; count++)
            x = x & 1 ? 3 * x + 1 : x / 2;
        assert_int_equal(steps[i], count);
    }
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_add), cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_reduction),  cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_nbody),      cmocka_unit_test(test_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
