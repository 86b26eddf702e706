/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions on matrices against plain loops over whole matrices.
 */
#include "matrices.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

static uint64_t seed = 9;

static struct mma mma_of(const struct problem *problem)
{
    struct mma mma = {.counts = {registers(problem->m * problem->n, problem->d_type),
                                 registers(problem->m * problem->k, problem->a_type),
                                 registers(problem->n * problem->k, problem->b_type),
                                 registers(problem->m * problem->n, problem->c_type)},
                      .bits = problem->d_type == &f64 ? 64 : 32};
    sprintf(mma.opcode, "mma.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s%s", problem->m,
            problem->n, problem->k, problem->modifier, problem->d_type->name, problem->a_type->name,
            problem->b_type->name, problem->c_type->name, problem->tail);
    return mma;
}

/* A number between 1 and 2 with all bits of a double. */
static uint64_t fraction(const struct element *type)
{
    return (uint64_t)1023 << 52 | (uint64_t)unit_random(&seed) << 20 | unit_random(&seed) >> 12;
}

static void check_mma_rounded(struct problem *problem, int rounding)
{
    void *memory[5];
    struct mma mma = mma_of(problem);
    struct machine *machine = mma_machine(&mma, memory);
    spread_a(problem, problem->a, problem->k, memory[1]);
    spread_b(problem, memory[2]);
    spread_c(problem, memory[3]);
    mma_run(machine, memory);
    fesetround(rounding);
    expect_d(problem, memory[0]);
    fesetround(FE_TONEAREST);
    machine_destroy(machine);
}

static void check_mma(struct problem *problem)
{
    check_mma_rounded(problem, FE_TONEAREST);
}

static void test_mma_floats(void **state)
{
    static const struct {
        unsigned m, k;
        const struct element *ab, *cd;
    } cases[] = {
        {16, 8, &f16, &f16},   {16, 8, &f16, &f32},   {16, 16, &f16, &f16},  {16, 16, &f16, &f32},
        {16, 8, &bf16, &f32},  {16, 16, &bf16, &f32}, {16, 4, &tf32, &f32},  {16, 8, &tf32, &f32},
        {8, 4, &f64, &f64},    {16, 4, &f64, &f64},   {16, 8, &f64, &f64},   {16, 16, &f64, &f64},
        {16, 32, &e4m3, &f32}, {16, 32, &e5m2, &f32}, {16, 16, &e4m3, &f16},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct problem *problem = problem_of(cases[i].m, 8, cases[i].k, cases[i].ab, cases[i].cd);
        fill(problem, simple);
        check_mma(problem);
        /* Infinities, NaN, subnormals: in the order that is documented. */
        if (cases[i].cd == &f16)
            continue;
        for (unsigned round = 0; round < 3; round++) {
            fill(problem, any);
            check_mma(problem);
        }
    }
}

/* Doubles that are rounded otherwise than to nearest. */
static void test_mma_rounding(void **state)
{
    static const struct {
        const char *modifier;
        int mode;
    } roundings[] = {
        {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};
    for (unsigned i = 0; i < 4; i++) {
        struct problem *problem = problem_of(16, 8, 16, &f64, &f64);
        fill(problem, fraction);
        problem->modifier = roundings[i].modifier;
        check_mma_rounded(problem, roundings[i].mode);
    }
}

static void test_mma_integers(void **state)
{
    static const struct {
        unsigned m, k;
        const struct element *a, *b;
    } cases[] = {
        {8, 16, &s8, &s8},   {16, 16, &s8, &u8},  {16, 32, &u8, &s8}, {16, 32, &u8, &u8},
        {8, 32, &s4, &u4},   {16, 32, &u4, &u4},  {16, 64, &s4, &s4}, {8, 128, &b1, &b1},
        {16, 128, &b1, &b1}, {16, 256, &b1, &b1},
    };
    for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct problem *problem =
            problem_of(cases[i / 2].m, 8, cases[i / 2].k, cases[i / 2].a, &s32);
        problem->b_type = cases[i / 2].b;
        fill(problem, simple);
        if (problem->a_type == &b1) {
            problem->counts_and = i % 2;
            problem->tail = i % 2 ? ".and.popc" : ".xor.popc";
        } else if (i % 2) {
            problem->saturates = true;
            problem->modifier = ".satfinite";
        }
        check_mma(problem);
    }
}

/* ---- wmma: through memory, so that the layout of registers does not show ---- */

static void lay_out(void *memory, const struct element *type, unsigned rows, unsigned columns,
                    bool column_major, unsigned stride, const uint64_t *values, unsigned width)
{
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < columns; column++)
            put_bits(memory, column_major ? column * stride + row : row * stride + column,
                     type->bits, values[row * width + column]);
    }
}

static unsigned wmma_registers(const struct problem *problem, char matrix)
{
    if (matrix == 'a')
        return problem->a_type == &f16 ? 8 : registers(problem->m * problem->k, problem->a_type);
    if (matrix == 'b')
        return problem->b_type == &f16 ? 8 : registers(problem->n * problem->k, problem->b_type);
    return registers(problem->m * problem->n, matrix == 'c' ? problem->c_type : problem->d_type);
}

static const char *layout_name(unsigned columns, unsigned bit)
{
    return columns >> bit & 1 ? "col" : "row";
}

/* Bits of `columns`: whether a, b, c and d lie in columns. */
static void wmma_text(const struct problem *problem, unsigned columns, const unsigned strides[4],
                      char *text)
{
    char shape[32];
    sprintf(shape, "m%un%uk%u", problem->m, problem->n, problem->k);
    text += sprintf(text,
                    ".version 8.4\n.target sm_90\n.address_size 64\n"
                    ".entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
                    ".reg .b64 %%p;\n.reg .b%u %%d<8>, %%a<8>, %%b<8>, %%c<8>;\n",
                    problem->d_type == &f64 ? 64 : 32);
    const struct element *types[3] = {problem->a_type, problem->b_type, problem->c_type};
    for (unsigned i = 0; i < 3; i++) {
        text += sprintf(text, "ld.param.u64 %%p, [%c];\nwmma.load.%c.sync.aligned.%s.%s.global.%s ",
                        "abc"[i], "abc"[i], layout_name(columns, i), shape, types[i] -> name);
        append_list(text, "abc"[i], wmma_registers(problem, "abc"[i]));
        text += strlen(text);
        text += sprintf(text, ", [%%p], %u;\n", strides[i]);
    }
    text += sprintf(text, "wmma.mma%s.sync.aligned.%s.%s.%s.%s", problem->tail,
                    layout_name(columns, 0), layout_name(columns, 1), shape, problem->d_type->name);
    if (problem->a_type != &f16)
        text += sprintf(text, ".%s.%s", problem->a_type->name, problem->b_type->name);
    text += sprintf(text, ".%s%s ", problem->c_type->name, problem->modifier);
    for (unsigned i = 0; i < 4; i++) {
        append_list(text, "dabc"[i], wmma_registers(problem, "dabc"[i]));
        strcat(text, i < 3 ? ", " : ";\n");
    }
    text += strlen(text);
    text += sprintf(text, "ld.param.u64 %%p, [d];\nwmma.store.d.sync.aligned.%s.%s.%s [%%p], ",
                    layout_name(columns, 3), shape, problem->d_type->name);
    append_list(text, 'd', wmma_registers(problem, 'd'));
    sprintf(text + strlen(text), ", %u;\nret;\n}\n", strides[3]);
}

static void check_wmma(struct problem *problem, unsigned columns)
{
    char text[8192];
    void *memory[4], *params[4];
    unsigned m = problem->m, n = problem->n, k = problem->k;
    unsigned gap = problem->a_type->bits < 8 ? 0 : 128 / problem->a_type->bits;
    unsigned strides[4] = {(columns & 1 ? m : k) + gap, (columns & 2 ? k : n) + gap,
                           (columns & 4 ? m : n) + 4, columns & 8 ? m : n};
    fill(problem, simple);
    wmma_text(problem, columns, strides, text);
    struct machine *machine = machine_create_from(text);
    for (unsigned i = 0; i < 4; i++) {
        memory[i] = machine_memory(machine, 8192);
        params[i] = &memory[i];
    }
    lay_out(memory[1], problem->a_type, m, k, columns & 1, strides[0], problem->a[0], DEPTH);
    lay_out(memory[2], problem->b_type, k, n, columns & 2, strides[1], problem->b[0], SIDE);
    lay_out(memory[3], problem->c_type, m, n, columns & 4, strides[2], problem->c[0], SIDE);
    CUresult result = machine_launch(machine, "k", 1, 32, 0, params);
    if (result)
        fail_msg("%d: %s", result, machine->message);
    for (unsigned row = 0; row < m; row++) {
        for (unsigned column = 0; column < n; column++) {
            unsigned at = columns & 8 ? column * strides[3] + row : row * strides[3] + column;
            expect_element(problem, row, column, get_bits(memory[0], at, problem->d_type->bits));
        }
    }
    machine_destroy(machine);
}

static void test_wmma(void **state)
{
    static const struct {
        const struct element *ab, *c, *d;
    } types[] = {{&f16, &f32, &f32},  {&f16, &f16, &f16}, {&f16, &f16, &f32}, {&f16, &f32, &f16},
                 {&bf16, &f32, &f32}, {&s8, &s32, &s32},  {&u8, &s32, &s32}};
    static const unsigned shapes[3][2] = {{16, 16}, {32, 8}, {8, 32}};
    for (unsigned i = 0; i < 3 * sizeof(types) / sizeof(types[0]); i++) {
        const unsigned *shape = shapes[i % 3];
        struct problem *problem =
            problem_of(shape[0], shape[1], 16, types[i / 3].ab, types[i / 3].c);
        problem->d_type = types[i / 3].d;
        problem->saturates = problem->a_type == &u8;
        problem->modifier = problem->saturates ? ".satfinite" : "";
        for (unsigned columns = 0; columns < 16; columns += 1 + i % 2)
            check_wmma(problem, columns);
    }
    for (unsigned columns = 0; columns < 16; columns++) {
        check_wmma(problem_of(16, 16, 8, &tf32, &f32), columns);
        check_wmma(problem_of(8, 8, 4, &f64, &f64), columns);
    }
    check_wmma(problem_of(8, 8, 32, &s4, &s32), 2);
    check_wmma(problem_of(8, 8, 32, &u4, &s32), 10);
    struct problem *bits = problem_of(8, 8, 128, &b1, &s32);
    bits->tail = ".xor.popc";
    check_wmma(bits, 2);
    bits->tail = ".and.popc";
    bits->counts_and = true;
    check_wmma(bits, 2);
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

#define MATRICES                                                                           \
    ".version 8.4\n.target sm_90\n.address_size 64\n"                                      \
    ".entry k(.param .u64 from, .param .u64 to)\n{\n.reg .b32 %r<8>;\n.reg .b64 %p, %q;\n" \
    ".shared .align 16 .b8 s[512];\nmov.u32 %r0, %laneid;\nshl.b32 %r5, %r0, 4;\n"         \
    "cvt.u64.u32 %q, %r5;\nmov.u32 %r6, s;\nadd.u32 %r6, %r6, %r5;\n"
#define READ_ROWS                                                                            \
    "ld.param.u64 %p, [from];\nadd.u64 %p, %p, %q;\nld.global.v4.b32 {%r1, %r2, %r3, %r4}, " \
    "[%p];\n"
#define WRITE_ROWS \
    "ld.param.u64 %p, [to];\nadd.u64 %p, %p, %q;\nst.global.v4.b32 [%p], {%r1, %r2, %r3, %r4};\n"

static uint16_t *run_matrices(struct machine *machine, uint16_t *from)
{
    uint16_t *to = machine_memory(machine, 512);
    for (unsigned i = 0; i < 256; i++)
        from[i] = (uint16_t)unit_random(&seed);
    CUresult result = machine_launch(machine, "k", 1, 32, 0, (void *[]){&from, &to});
    if (result)
        fail_msg("%d: %s", result, machine->message);
    return to;
}

static void check_ldmatrix(bool transposed, unsigned count)
{
    char text[2048];
    static const char *const lists[] = {"", "{%r1}", "{%r1, %r2}", "", "{%r1, %r2, %r3, %r4}"};
    snprintf(text, sizeof(text), "%s%sldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 %s, [%%r6];\n%s",
             MATRICES READ_ROWS, "st.shared.v4.b32 [%r6], {%r1, %r2, %r3, %r4};\nbar.sync 0;\n",
             count, transposed ? ".trans" : "", lists[count], WRITE_ROWS "ret;\n}\n");
    struct machine *machine = machine_create_from(text);
    uint16_t *from = machine_memory(machine, 512), *to = run_matrices(machine, from);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 2 * count; i++) {
            unsigned row = lane / 4, column = 2 * (lane % 4) + i % 2, matrix = i / 2;
            unsigned at = transposed ? column * 8 + row : row * 8 + column;
            assert_int_equal(to[lane * 8 + i], from[matrix * 64 + at]);
        }
    }
    machine_destroy(machine);
}

static void check_stmatrix(bool transposed)
{
    char text[2048];
    snprintf(text, sizeof(text),
             "%sstmatrix.sync.aligned.m8n8.x4%s.shared.b16 [%%r6], {%%r1, %%r2, %%r3, %%r4};\n%s",
             MATRICES READ_ROWS, transposed ? ".trans" : "",
             "bar.sync 0;\nld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r6];\n" WRITE_ROWS "ret;\n}\n");
    struct machine *machine = machine_create_from(text);
    uint16_t *from = machine_memory(machine, 512), *to = run_matrices(machine, from);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 8; i++) {
            unsigned row = lane / 4, column = 2 * (lane % 4) + i % 2, matrix = i / 2;
            unsigned at = transposed ? column * 8 + row : row * 8 + column;
            assert_int_equal(to[matrix * 64 + at], from[lane * 8 + i]);
        }
    }
    machine_destroy(machine);
}

static void test_matrices(void **state)
{
    for (unsigned count = 1; count <= 4; count *= 2) {
        check_ldmatrix(false, count);
        check_ldmatrix(true, count);
    }
    check_stmatrix(false);
    check_stmatrix(true);
}

static void test_movmatrix(void **state)
{
    struct machine *machine = machine_create_from(
        MATRICES READ_ROWS "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;\n" WRITE_ROWS
                           "ret;\n}\n");
    uint16_t *from = machine_memory(machine, 512), *to = run_matrices(machine, from);
    for (unsigned row = 0; row < 8; row++) {
        for (unsigned column = 0; column < 8; column++) {
            unsigned here = (4 * row + column / 2) * 8 + column % 2;
            unsigned there = (4 * column + row / 2) * 8 + row % 2;
            assert_int_equal(to[here], from[there]);
        }
    }
    machine_destroy(machine);
}

/* A matrix that reaches beyond its memory is a fault like any other. */
static void test_beyond(void **state)
{
    struct machine *machine = machine_create_from(
        ".version 8.4\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p)\n{\n"
        ".reg .b64 %p;\n.reg .b32 %r<8>;\nld.param.u64 %p, [p];\n"
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
        "[%p], 16;\nret;\n}\n");
    char *memory = machine_memory(machine, 512), *beyond = memory + 32, *odd = memory + 2;
    assert_int_equal(machine_launch(machine, "k", 1, 32, 0, (void *[]){&memory}), CUDA_SUCCESS);
    assert_int_equal(machine_launch(machine, "k", 1, 32, 0, (void *[]){&beyond}),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_non_null(strstr(machine->message, "illegal read"));
    assert_int_equal(machine_launch(machine, "k", 1, 32, 0, (void *[]){&odd}),
                     CUDA_ERROR_MISALIGNED_ADDRESS);
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma_floats),   cmocka_unit_test(test_mma_rounding),
        cmocka_unit_test(test_mma_integers), cmocka_unit_test(test_wmma),
        cmocka_unit_test(test_matrices),     cmocka_unit_test(test_movmatrix),
        cmocka_unit_test(test_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
