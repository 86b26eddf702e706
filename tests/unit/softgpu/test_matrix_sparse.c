/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma.sp against the dense product of the matrix that its A stands for. It has every type and
 * shape, every sparsity selector, and every pattern of metadata at every place. Lanes that the
 * selector does not name hold other metadata.
 */
#include "matrices.h"

#include <stdio.h>
#include <string.h>

static uint64_t seed = 5;

struct sparse {
    unsigned k;
    const struct element *a, *b, *cd;
    unsigned selectors;
};

/* Selectors: lanes of a four that metadata does not fill. */
static const struct sparse cases[] = {
    {16, &f16, &f16, &f16, 4},   {16, &f16, &f16, &f32, 4},   {32, &f16, &f16, &f16, 2},
    {32, &f16, &f16, &f32, 2},   {16, &bf16, &bf16, &f32, 4}, {32, &bf16, &bf16, &f32, 2},
    {8, &tf32, &tf32, &f32, 4},  {16, &tf32, &tf32, &f32, 2}, {64, &e4m3, &e4m3, &f32, 1},
    {64, &e5m2, &e4m3, &f32, 1}, {64, &e4m3, &e5m2, &f32, 1}, {32, &s8, &s8, &s32, 2},
    {32, &u8, &s8, &s32, 2},     {64, &s8, &u8, &s32, 1},     {64, &u8, &u8, &s32, 1},
    {64, &s4, &s4, &s32, 2},     {64, &u4, &s4, &s32, 2},     {128, &s4, &u4, &s32, 1},
    {128, &u4, &u4, &s32, 1},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* Two indices, the first one lowest. Those of ordered metadata come first. */
static const unsigned pairs[] = {0x4, 0x8, 0x9, 0xc, 0xd, 0xe, 0x1, 0x2, 0x6, 0x3, 0x7, 0xb};
static const unsigned singles[] = {0x4, 0xe};

/* A chunk of a row: `size` columns, of which half are there, in runs of `run`. */
struct chunks {
    unsigned size, run;
};

static struct chunks chunks_of(const struct element *type)
{
    return type->bits == 32  ? (struct chunks){2, 1}
           : type->bits == 4 ? (struct chunks){8, 2}
                             : (struct chunks){4, 1};
}

static unsigned pattern_count(const struct sparse *sparse, bool ordered)
{
    return sparse->a == &tf32 ? 2 : ordered ? 6 : 12;
}

/* Round by round another one, and elsewhere in no order: neighbors must not be mistaken. */
static unsigned pattern_at(const struct sparse *sparse, bool ordered, unsigned row, unsigned chunk,
                           unsigned round)
{
    unsigned place = (row * 16 + chunk) * 2654435761u >> 16;
    unsigned at = (place + round) % pattern_count(sparse, ordered);
    return sparse->a == &tf32 ? singles[at] : pairs[at];
}

/* The column of a chunk where its i-th stored element belongs. */
static unsigned column_in(const struct sparse *sparse, unsigned pattern, unsigned i)
{
    if (sparse->a == &tf32)
        return pattern == 0xe;
    unsigned run = chunks_of(sparse->a).run;
    return (pattern >> i / run * 2 & 3) * run + i % run;
}

/* As PTX draws it: the lane that has the metadata of a chunk, and its first bit there. */
static void put_metadata(const struct sparse *sparse, unsigned selector, unsigned row,
                         unsigned chunk, unsigned pattern, uint32_t *metadata)
{
    unsigned group = row % 8, lanes = 4 / sparse->selectors, lane, bit;
    if (sparse->a->bits >= 16) { /* T0: [15..0] row 0, [31..16] row 8; T1: further columns */
        lane = chunk / 4;
        bit = chunk % 4 * 4 + (row >= 8 ? 16 : 0);
    } else { /* T0: row 0, T1: row 8; T2, T3: further columns */
        lane = chunk / 8 * 2 + (row >= 8);
        bit = chunk % 8 * 4;
    }
    uint32_t *word = &metadata[4 * group + selector * lanes + lane];
    *word = (*word & ~(0xfu << bit)) | pattern << bit;
}

/* Makes a of the problem sparse, and what is left of it the stored matrix and its metadata. */
static void make_sparse(const struct sparse *sparse, unsigned selector, bool ordered,
                        unsigned round, struct problem *problem, uint64_t stored[SIDE][DEPTH],
                        uint32_t *metadata)
{
    unsigned size = chunks_of(sparse->a).size, half = size / 2;
    memset(problem->absent, true, sizeof(problem->absent));
    for (unsigned i = 0; i < LANES; i++)
        metadata[i] = unit_random(&seed);
    for (unsigned row = 0; row < 16; row++) {
        for (unsigned chunk = 0; chunk < sparse->k / size; chunk++) {
            unsigned pattern = pattern_at(sparse, ordered, row, chunk, round);
            put_metadata(sparse, selector, row, chunk, pattern, metadata);
            for (unsigned i = 0; i < half; i++) {
                unsigned column = chunk * size + column_in(sparse, pattern, i);
                stored[row][chunk * half + i] = problem->a[row][column];
                problem->absent[row][column] = false;
            }
        }
    }
}

/* The reference then multiplies with all of it. */
static void fill_with_zeros(struct problem *problem)
{
    for (unsigned row = 0; row < SIDE; row++) {
        for (unsigned column = 0; column < DEPTH; column++) {
            if (problem->absent[row][column])
                problem->a[row][column] = 0;
        }
    }
    memset(problem->absent, false, sizeof(problem->absent));
}

static struct mma mma_of(const struct problem *problem, unsigned selector, bool ordered)
{
    struct mma mma = {.counts = {registers(16 * 8, problem->d_type),
                                 registers(16 * problem->k / 2, problem->a_type),
                                 registers(8 * problem->k, problem->b_type),
                                 registers(16 * 8, problem->c_type)},
                      .bits = 32};
    snprintf(mma.opcode, sizeof(mma.opcode), "mma.sp%s.sync.aligned.m16n8k%u.row.col%s.%s.%s.%s.%s",
             ordered ? "::ordered_metadata" : "", problem->k, problem->modifier,
             problem->d_type->name, problem->a_type->name, problem->b_type->name,
             problem->c_type->name);
    snprintf(mma.tail, sizeof(mma.tail), ", %%e0, 0x%x", selector);
    return mma;
}

static struct problem *problem_for(const struct sparse *sparse, bool saturates)
{
    struct problem *problem = problem_of(16, 8, sparse->k, sparse->a, sparse->cd);
    problem->b_type = sparse->b;
    problem->saturates = saturates;
    problem->modifier = saturates ? ".satfinite" : "";
    return problem;
}

static void check(const struct sparse *sparse, unsigned selector, bool ordered, bool with_zeros,
                  bool saturates)
{
    static uint64_t stored[SIDE][DEPTH];
    void *memory[5];
    struct problem *problem = problem_for(sparse, saturates);
    struct mma mma = mma_of(problem, selector, ordered);
    struct machine *machine = mma_machine(&mma, memory);
    for (unsigned round = 0; round < pattern_count(sparse, ordered); round++) {
        fill(problem, with_zeros ? simple : any);
        make_sparse(sparse, selector, ordered, round, problem, stored, memory[4]);
        if (with_zeros)
            fill_with_zeros(problem);
        for (unsigned i = 0; i < 4; i++)
            memset(memory[i], 0, MMA_MEMORY);
        spread_a(problem, stored, sparse->k / 2, memory[1]);
        spread_b(problem, memory[2]);
        spread_c(problem, memory[3]);
        mma_run(machine, memory);
        expect_d(problem, memory[0]);
    }
    machine_destroy(machine);
}

static void test_patterns(void **state)
{
    for (unsigned i = 0; i < CASES; i++) {
        for (unsigned selector = 0; selector < cases[i].selectors; selector++) {
            check(&cases[i], selector, true, true, cases[i].cd == &s32);
            check(&cases[i], selector, false, true, false);
        }
    }
}

/* What is not there is not multiplied with, not even with an infinity or a NaN. */
static void test_any_value(void **state)
{
    for (unsigned i = 0; i < CASES; i++) {
        if (cases[i].cd == &f32)
            check(&cases[i], cases[i].selectors - 1, true, false, false);
    }
}

static void expect_refusal(const struct mma *mma, CUresult expected, const char *words)
{
    char text[8192], log[1024] = "";
    CUresult result = CUDA_SUCCESS;
    mma_text(mma, text);
    struct sg_module *module = sg_module_load(text, strlen(text), 90, log, sizeof(log), &result);
    if (module || result != expected || !strstr(log, mma->opcode) || !strstr(log, words))
        fail_msg("%d: %s\ninstead of %s: %s", result, log, mma->opcode, words);
}

static void test_selectors(void **state)
{
    for (unsigned i = 0; i < CASES; i++) {
        struct mma mma = mma_of(problem_for(&cases[i], false), cases[i].selectors, true);
        expect_refusal(&mma, CUDA_ERROR_INVALID_PTX, "sparsity selector");
        strcpy(mma.tail, ", %e0, %e0");
        expect_refusal(&mma, CUDA_ERROR_INVALID_PTX, "sparsity selector");
        strcpy(mma.tail, ", 0x44444444, 0");
        expect_refusal(&mma, CUDA_ERROR_INVALID_PTX, "metadata");
        strcpy(mma.tail, "");
        expect_refusal(&mma, CUDA_ERROR_INVALID_PTX, "too few operands");
    }
}

static void test_no_such_form(void **state)
{
    static const char *const opcodes[] = {
        "mma.sp.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
        "mma.sp.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32",
        "mma.sp.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
        "mma.sp.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
        "mma.sp::unordered.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    };
    for (unsigned i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
        struct mma mma = {.counts = {4, 2, 2, 4}, .bits = 32, .tail = ", %e0, 0"};
        strcpy(mma.opcode, opcodes[i]);
        expect_refusal(&mma, CUDA_ERROR_NOT_SUPPORTED, "does not run this instruction");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_any_value),
        cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_no_such_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
