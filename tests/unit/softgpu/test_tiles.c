/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions on matrices against plain loops over whole matrices. Where each lane's registers
 * belong is written down here once more, as PTX describes it: element by element.
 */
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 32
#define DEPTH 256
#define LANES 32

static uint64_t seed = 7;

/* ---- Elements ---- */

struct element {
    const char *name;
    unsigned bits;
    unsigned exponent, mantissa; /* of a floating-point format; 0: an integer */
    bool is_signed;
};

static const struct element f16 = {"f16", 16, 5, 10}, bf16 = {"bf16", 16, 8, 7},
                            tf32 = {"tf32", 32, 8, 10}, f32 = {"f32", 32, 8, 23},
                            f64 = {"f64", 64, 11, 52}, e4m3 = {"e4m3", 8, 4, 3},
                            e5m2 = {"e5m2", 8, 5, 2}, s8 = {"s8", 8, .is_signed = true},
                            u8 = {"u8", 8}, s4 = {"s4", 4, .is_signed = true}, u4 = {"u4", 4},
                            b1 = {"b1", 1}, s32 = {"s32", 32, .is_signed = true};

static double decode(const struct element *type, uint64_t bits)
{
    if (!type->exponent) {
        int64_t value = (int64_t)bits;
        return (double)(type->is_signed && bits >> (type->bits - 1) ? value - (1ll << type->bits)
                                                                    : value);
    }
    if (type == &tf32)
        bits = bits >> 13;
    unsigned low = type->mantissa;
    uint64_t mantissa = bits & ((1ull << low) - 1);
    int exponent = (int)(bits >> low & ((1u << type->exponent) - 1));
    int bias = (1 << (type->exponent - 1)) - 1, last = (1 << type->exponent) - 1;
    double sign = bits >> (low + type->exponent) & 1 ? -1 : 1;
    if (type == &e4m3 && exponent == last && mantissa == 7)
        return NAN;
    if (type != &e4m3 && exponent == last)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp((double)mantissa, 1 - bias - (int)low);
    return sign * ldexp((double)(mantissa | 1ull << low), exponent - bias - (int)low);
}

/* Only for what the type holds exactly. */
static uint64_t encode(const struct element *type, double value)
{
    if (!type->exponent)
        return (uint64_t)(int64_t)value &
               (type->bits == 64 ? UINT64_MAX : (1ull << type->bits) - 1);
    int exponent, bias = (1 << (type->exponent - 1)) - 1;
    uint64_t sign = signbit(value) ? 1ull << (type->exponent + type->mantissa) : 0, bits = 0;
    double fraction = frexp(fabs(value), &exponent);
    if (fraction != 0)
        bits = (uint64_t)((exponent - 1 + bias)) << type->mantissa |
               (uint64_t)ldexp(fraction * 2 - 1, (int)type->mantissa);
    return (bits | sign) << (type == &tf32 ? 13 : 0);
}

static double round_to_half(double x)
{
    int exponent = x == 0 ? -14 : ilogb(x);
    exponent = exponent < -14 ? -14 : exponent;
    return ldexp(rint(ldexp(x, 10 - exponent)), exponent - 10);
}

/* Small enough that all sums are exact in f32. */
static uint64_t simple(const struct element *type)
{
    uint64_t r = unit_random(&seed);
    if (!type->exponent)
        return r & ((1ull << type->bits) - 1);
    unsigned range = type->mantissa < 7 ? 4 : 64;
    return encode(type, ((double)(r % (2 * range + 1)) - range) / (type->mantissa < 7 ? 2 : 8));
}

static uint64_t any(const struct element *type)
{
    uint64_t bits = unit_random(&seed) & (type->bits == 64 ? UINT64_MAX : (1ull << type->bits) - 1);
    return type == &tf32 ? bits & 0xffffe000 : bits;
}

/* ---- A problem ---- */

struct problem {
    unsigned m, n, k;
    const struct element *a_type, *b_type, *c_type, *d_type;
    uint64_t a[SIDE][DEPTH], b[DEPTH][SIDE], c[SIDE][SIDE];
    const char *modifier; /* behind the layouts */
    const char *tail;
    bool saturates, counts_and;
};

static void fill(struct problem *problem, uint64_t (*value)(const struct element *))
{
    for (unsigned i = 0; i < SIDE; i++) {
        for (unsigned j = 0; j < DEPTH; j++) {
            problem->a[i][j] = value(problem->a_type);
            problem->b[j][i] = value(problem->b_type);
        }
        for (unsigned j = 0; j < SIDE; j++) {
            problem->c[i][j] = value(problem->c_type == &s32 ? &u8 : problem->c_type);
            if (problem->c_type == &s32)
                problem->c[i][j] =
                    (uint32_t)(unit_random(&seed) % 3 ? 0x7fffffff : 0x80000000) ^ problem->c[i][j];
        }
    }
}

static double integer_sum(const struct problem *problem, unsigned row, unsigned column)
{
    int64_t sum = (int32_t)problem->c[row][column];
    for (unsigned i = 0; i < problem->k; i++) {
        uint64_t a = problem->a[row][i], b = problem->b[i][column];
        if (problem->a_type == &b1)
            sum += problem->counts_and ? (a & b) != 0 : a != b;
        else
            sum += (int64_t)decode(problem->a_type, a) * (int64_t)decode(problem->b_type, b);
    }
    if (!problem->saturates)
        return (int32_t)sum;
    return (double)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

static double expected(const struct problem *problem, unsigned row, unsigned column)
{
    if (problem->c_type == &s32)
        return integer_sum(problem, row, column);
    double wide = decode(problem->c_type, problem->c[row][column]);
    float narrow = (float)wide;
    for (unsigned i = 0; i < problem->k; i++) {
        double a = decode(problem->a_type, problem->a[row][i]);
        double b = decode(problem->b_type, problem->b[i][column]);
        wide = fma(a, b, wide);
        narrow += (float)a * (float)b;
    }
    return problem->d_type == &f64   ? wide
           : problem->d_type == &f16 ? round_to_half(narrow)
                                     : narrow;
}

static void expect_element(const struct problem *problem, unsigned row, unsigned column,
                           uint64_t bits)
{
    double wanted = expected(problem, row, column), got = decode(problem->d_type, bits);
    if (isnan(wanted) ? !isnan(got) : wanted != got || signbit(wanted) != signbit(got))
        fail_msg("m%un%uk%u %s.%s at %u,%u: %a, not %a", problem->m, problem->n, problem->k,
                 problem->d_type->name, problem->a_type->name, row, column, got, wanted);
}

/* ---- mma: where PTX says that the elements are ---- */

static void place_in_a(const struct problem *problem, unsigned lane, unsigned i, unsigned *row,
                       unsigned *column)
{
    unsigned each = problem->a_type->bits == 64 ? 1 : 32 / problem->a_type->bits;
    unsigned group = lane >> 2, thread = lane % 4;
    if (problem->m == 8) {
        *row = group;
        *column = thread * each + i;
        return;
    }
    *row = i / each % 2 == 0 ? group : group + 8;
    *column = thread * each + i % each + (i >= 2 * each ? i / (2 * each) * 4 * each : 0);
}

static void place_in_b(const struct problem *problem, unsigned lane, unsigned i, unsigned *row,
                       unsigned *column)
{
    unsigned each = problem->b_type->bits == 64 ? 1 : 32 / problem->b_type->bits;
    *row = lane % 4 * each + i % each + i / each * 4 * each;
    *column = lane >> 2;
}

static void place_in_c(unsigned lane, unsigned i, unsigned *row, unsigned *column)
{
    *row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
    *column = lane % 4 * 2 + (i & 1);
}

static unsigned registers(unsigned elements, const struct element *type)
{
    return elements * type->bits / LANES / (type->bits == 64 ? 64 : 32);
}

static void put_bits(void *memory, uint64_t at, unsigned bits, uint64_t value)
{
    unsigned char *bytes = memory;
    if (bits >= 8) {
        memcpy(bytes + at * bits / 8, &value, bits / 8);
        return;
    }
    bytes[at * bits / 8] |= (unsigned char)(value << (at * bits % 8));
}

static uint64_t get_bits(const void *memory, uint64_t at, unsigned bits)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)memory + at * bits / 8, bits / 8);
    return value;
}

/* Lane after lane, its elements in order: what the kernel loads its registers from. */
static void spread(const struct problem *problem, void *a, void *b, void *c)
{
    unsigned row, column;
    unsigned count_a = problem->m * problem->k / 32, count_b = problem->n * problem->k / 32;
    unsigned count_c = problem->m * problem->n / 32;
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < count_a; i++) {
            place_in_a(problem, lane, i, &row, &column);
            put_bits(a, lane * count_a + i, problem->a_type->bits, problem->a[row][column]);
        }
        for (unsigned i = 0; i < count_b; i++) {
            place_in_b(problem, lane, i, &row, &column);
            put_bits(b, lane * count_b + i, problem->b_type->bits, problem->b[row][column]);
        }
        for (unsigned i = 0; i < count_c; i++) {
            place_in_c(lane, i, &row, &column);
            put_bits(c, lane * count_c + i, problem->c_type->bits, problem->c[row][column]);
        }
    }
}

static void append_moves(char *text, const char *format, char name, unsigned count, unsigned bits)
{
    text += strlen(text);
    text += sprintf(text,
                    "mad.lo.u32 %%r1, %%r0, %u, 0;\ncvt.u64.u32 %%at, %%r1;\n"
                    "ld.param.u64 %%p, [%c];\nadd.u64 %%p, %%p, %%at;\n",
                    count * bits / 8, name);
    for (unsigned i = 0; i < count; i++, text += strlen(text))
        sprintf(text, format, bits, name, i, i * bits / 8);
}

static void append_list(char *text, char name, unsigned count)
{
    text += strlen(text);
    for (unsigned i = 0; i < count; i++, text += strlen(text))
        sprintf(text, "%s%%%c%u", i ? ", " : "{", name, i);
    strcpy(text, "}");
}

static void mma_text(const struct problem *problem, char *text)
{
    unsigned counts[4] = {registers(problem->m * problem->n, problem->d_type),
                          registers(problem->m * problem->k, problem->a_type),
                          registers(problem->n * problem->k, problem->b_type),
                          registers(problem->m * problem->n, problem->c_type)};
    unsigned bits = problem->d_type == &f64 ? 64 : 32;
    sprintf(text,
            ".version 8.4\n.target sm_90\n.address_size 64\n"
            ".entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
            ".reg .b32 %%r<2>;\n.reg .b64 %%p, %%at;\n.reg .b%u %%d<8>, %%a<8>, %%b<8>, "
            "%%c<8>;\nmov.u32 %%r0, %%laneid;\n",
            bits);
    for (unsigned i = 1; i < 4; i++)
        append_moves(text, "ld.global.b%u %%%c%u, [%%p+%u];\n", "dabc"[i], counts[i], bits);
    sprintf(text + strlen(text), "mma.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s%s ", problem->m,
            problem->n, problem->k, problem->modifier, problem->d_type->name, problem->a_type->name,
            problem->b_type->name, problem->c_type->name, problem->tail);
    for (unsigned i = 0; i < 4; i++) {
        append_list(text, "dabc"[i], counts[i]);
        strcat(text, i < 3 ? ", " : ";\n");
    }
    append_moves(text, "st.global.b%1$u [%%p+%4$u], %%%2$c%3$u;\n", 'd', counts[0], bits);
    strcat(text, "ret;\n}\n");
}

static void check_mma(struct problem *problem)
{
    char text[8192];
    void *memory[4], *params[4];
    mma_text(problem, text);
    struct machine *machine = machine_create_from(text);
    for (unsigned i = 0; i < 4; i++) {
        memory[i] = machine_memory(machine, 8192);
        params[i] = &memory[i];
    }
    spread(problem, memory[1], memory[2], memory[3]);
    CUresult result = machine_launch(machine, "k", 1, 32, 0, params);
    if (result)
        fail_msg("%d: %s", result, machine->sentence);
    unsigned count = problem->m * problem->n / 32, row, column;
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < count; i++) {
            place_in_c(lane, i, &row, &column);
            expect_element(problem, row, column,
                           get_bits(memory[0], lane * count + i, problem->d_type->bits));
        }
    }
    machine_destroy(machine);
}

static struct problem *problem_of(unsigned m, unsigned n, unsigned k, const struct element *ab,
                                  const struct element *cd)
{
    static struct problem problem;
    problem = (struct problem){.m = m,
                               .n = n,
                               .k = k,
                               .a_type = ab,
                               .b_type = ab,
                               .c_type = cd,
                               .d_type = cd,
                               .modifier = "",
                               .tail = ""};
    return &problem;
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
        fail_msg("%d: %s", result, machine->sentence);
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
        fail_msg("%d: %s", result, machine->sentence);
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
    assert_non_null(strstr(machine->sentence, "illegal read"));
    assert_int_equal(machine_launch(machine, "k", 1, 32, 0, (void *[]){&odd}),
                     CUDA_ERROR_MISALIGNED_ADDRESS);
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma_floats), cmocka_unit_test(test_mma_integers),
        cmocka_unit_test(test_wmma),       cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_movmatrix),  cmocka_unit_test(test_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
