/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma.m8n8k4 of f16: four problems at once, in every layout and with every accumulator, where PTX
 * says that their elements are.
 */
#include "matrices.h"

#include <stdio.h>
#include <string.h>

#define QUADS 4

static const struct element *const sums[3][2] = {{&f16, &f16}, {&f32, &f16}, {&f32, &f32}};

/* A lane's problem is that of its quad. */
static unsigned problem_at(unsigned lane)
{
    return lane % 16 / 4;
}

static uint64_t in_a(const struct problem *problem, bool in_columns, unsigned lane, unsigned i)
{
    unsigned row = lane % 4 + (lane < 16 ? 0 : 4), column = i;
    if (in_columns) {
        row = i + (lane < 16 ? 0 : 4);
        column = lane % 4;
    }
    return problem->a[row][column];
}

static uint64_t in_b(const struct problem *problem, bool in_columns, unsigned lane, unsigned i)
{
    unsigned row = lane % 4, column = i + (lane < 16 ? 0 : 4);
    if (in_columns) {
        row = i;
        column = lane % 4 + (lane < 16 ? 0 : 4);
    }
    return problem->b[row][column];
}

static void place_in_c(const struct element *type, unsigned lane, unsigned i, unsigned *row,
                       unsigned *column)
{
    unsigned x = type == &f16 ? lane % 4 : (lane & 1) + (i & 2);
    *row = lane < 16 ? x : x + 4;
    *column = type == &f16 ? i : (i & 4) + (lane & 2) + (i & 1);
}

static void spread(const struct problem *problems, unsigned layouts, void *memory[5])
{
    unsigned row, column;
    for (unsigned lane = 0; lane < LANES; lane++) {
        const struct problem *problem = &problems[problem_at(lane)];
        for (unsigned i = 0; i < 4; i++) {
            put_bits(memory[1], 4 * lane + i, 16, in_a(problem, layouts & 1, lane, i));
            put_bits(memory[2], 4 * lane + i, 16, in_b(problem, layouts & 2, lane, i));
        }
        for (unsigned i = 0; i < 8; i++) {
            place_in_c(problem->c_type, lane, i, &row, &column);
            put_bits(memory[3], 8 * lane + i, problem->c_type->bits, problem->c[row][column]);
        }
    }
}

static void check(unsigned layouts, const struct element *d, const struct element *c,
                  uint64_t (*value)(const struct element *))
{
    static struct problem problems[QUADS];
    void *memory[5];
    unsigned row, column;
    struct mma mma = {.counts = {8 * d->bits / 32, 2, 2, 8 * c->bits / 32}, .bits = 32};
    snprintf(mma.opcode, sizeof(mma.opcode), "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s",
             layouts & 1 ? "col" : "row", layouts & 2 ? "col" : "row", d->name, c->name);
    struct machine *machine = mma_machine(&mma, memory);
    for (unsigned i = 0; i < QUADS; i++) {
        problems[i] = *problem_of(8, 8, 4, &f16, c);
        problems[i].d_type = d;
        fill(&problems[i], value);
    }
    spread(problems, layouts, memory);
    mma_run(machine, memory);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 8; i++) {
            place_in_c(d, lane, i, &row, &column);
            expect_element(&problems[problem_at(lane)], row, column,
                           get_bits(memory[0], 8 * lane + i, d->bits));
        }
    }
    machine_destroy(machine);
}

static void test_layouts(void **state)
{
    for (unsigned i = 0; i < 4 * 3; i++) {
        check(i % 4, sums[i / 4][0], sums[i / 4][1], simple);
        if (sums[i / 4][0] == &f32)
            check(i % 4, &f32, sums[i / 4][1], any);
    }
}

static void test_no_such_form(void **state)
{
    static const char *const opcodes[] = {
        "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32",
        "mma.sync.aligned.m8n8k4.row.row.f32.bf16.bf16.f32",
        "mma.sync.aligned.m8n8k4.row.row.f64.f64.f64.f64",
        "mma.sync.aligned.m16n8k8.col.col.f32.f16.f16.f32",
        "mma.sync.aligned.m8n8k4.row.col.satfinite.f16.f16.f16.f16",
    };
    for (unsigned i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
        char text[8192], log[1024] = "";
        CUresult result = CUDA_SUCCESS;
        struct mma mma = {.counts = {4, 2, 2, 4}, .bits = 32};
        strcpy(mma.opcode, opcodes[i]);
        mma_text(&mma, text);
        assert_null(sg_module_load(text, strlen(text), 90, log, sizeof(log), &result));
        assert_int_equal(result, CUDA_ERROR_NOT_SUPPORTED);
        assert_non_null(strstr(log, opcodes[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_no_such_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
