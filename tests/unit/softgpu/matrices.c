/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problems and kernels for tests of instructions on matrices, see matrices.h.
 */
#include "matrices.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 7;

/* ---- Elements ---- */

const struct element f16 = {"f16", 16, 5, 10}, bf16 = {"bf16", 16, 8, 7},
                     tf32 = {"tf32", 32, 8, 10}, f32 = {"f32", 32, 8, 23},
                     f64 = {"f64", 64, 11, 52}, e4m3 = {"e4m3", 8, 4, 3}, e5m2 = {"e5m2", 8, 5, 2},
                     s8 = {"s8", 8, .is_signed = true}, u8 = {"u8", 8},
                     s4 = {"s4", 4, .is_signed = true}, u4 = {"u4", 4}, b1 = {"b1", 1},
                     s32 = {"s32", 32, .is_signed = true};

double decode(const struct element *type, uint64_t bits)
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
uint64_t simple(const struct element *type)
{
    uint64_t r = unit_random(&seed);
    if (!type->exponent)
        return r & ((1ull << type->bits) - 1);
    unsigned range = type->mantissa < 7 ? 4 : 64;
    return encode(type, ((double)(r % (2 * range + 1)) - range) / (type->mantissa < 7 ? 2 : 8));
}

uint64_t any(const struct element *type)
{
    uint64_t bits = unit_random(&seed) & (type->bits == 64 ? UINT64_MAX : (1ull << type->bits) - 1);
    return type == &tf32 ? bits & 0xffffe000 : bits;
}

/* ---- A problem ---- */

void fill(struct problem *problem, uint64_t (*value)(const struct element *))
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
        if (problem->absent[row][i])
            continue;
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
        if (problem->absent[row][i])
            continue;
        double a = decode(problem->a_type, problem->a[row][i]);
        double b = decode(problem->b_type, problem->b[i][column]);
        wide = fma(a, b, wide);
        narrow += (float)a * (float)b;
    }
    return problem->d_type == &f64   ? wide
           : problem->d_type == &f16 ? round_to_half(narrow)
                                     : narrow;
}

void expect_element(const struct problem *problem, unsigned row, unsigned column, uint64_t bits)
{
    double wanted = expected(problem, row, column), got = decode(problem->d_type, bits);
    if (isnan(wanted) ? !isnan(got) : wanted != got || signbit(wanted) != signbit(got))
        fail_msg("m%un%uk%u %s.%s at %u,%u: %a, not %a", problem->m, problem->n, problem->k,
                 problem->d_type->name, problem->a_type->name, row, column, got, wanted);
}

struct problem *problem_of(unsigned m, unsigned n, unsigned k, const struct element *ab,
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

/* ---- Where PTX says that the elements are ---- */

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

unsigned registers(unsigned elements, const struct element *type)
{
    return elements * type->bits / LANES / (type->bits == 64 ? 64 : 32);
}

void put_bits(void *memory, uint64_t at, unsigned bits, uint64_t value)
{
    unsigned char *bytes = memory;
    if (bits >= 8) {
        memcpy(bytes + at * bits / 8, &value, bits / 8);
        return;
    }
    bytes[at * bits / 8] |= (unsigned char)(value << (at * bits % 8));
}

uint64_t get_bits(const void *memory, uint64_t at, unsigned bits)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)memory + at * bits / 8, bits / 8);
    return value;
}

/* Lane after lane, its elements in order: what the kernel loads its registers from. */
void spread_a(const struct problem *problem, const uint64_t a[SIDE][DEPTH], unsigned depth,
              void *memory)
{
    unsigned row, column, count = problem->m * depth / LANES;
    for (unsigned i = 0; i < LANES * count; i++) {
        place_in_a(problem, i / count, i % count, &row, &column);
        put_bits(memory, i, problem->a_type->bits, a[row][column]);
    }
}

void spread_b(const struct problem *problem, void *memory)
{
    unsigned row, column, count = problem->n * problem->k / LANES;
    for (unsigned i = 0; i < LANES * count; i++) {
        place_in_b(problem, i / count, i % count, &row, &column);
        put_bits(memory, i, problem->b_type->bits, problem->b[row][column]);
    }
}

void spread_c(const struct problem *problem, void *memory)
{
    unsigned row, column, count = problem->m * problem->n / LANES;
    for (unsigned i = 0; i < LANES * count; i++) {
        place_in_c(i / count, i % count, &row, &column);
        put_bits(memory, i, problem->c_type->bits, problem->c[row][column]);
    }
}

void expect_d(const struct problem *problem, const void *memory)
{
    unsigned row, column, count = problem->m * problem->n / LANES;
    for (unsigned i = 0; i < LANES * count; i++) {
        place_in_c(i / count, i % count, &row, &column);
        expect_element(problem, row, column, get_bits(memory, i, problem->d_type->bits));
    }
}

/* ---- A kernel ---- */

static void append(char *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsprintf(text + strlen(text), format, arguments);
    va_end(arguments);
}

static void append_moves(char *text, const char *format, char name, unsigned count, unsigned bits)
{
    append(text,
           "mad.lo.u32 %%r1, %%r0, %u, 0;\ncvt.u64.u32 %%at, %%r1;\n"
           "ld.param.u64 %%p, [%c];\nadd.u64 %%p, %%p, %%at;\n",
           count * bits / 8, name);
    for (unsigned i = 0; i < count; i++)
        append(text, format, bits, name, i, i * bits / 8);
}

void append_list(char *text, char name, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        append(text, "%s%%%c%u", i ? ", " : "{", name, i);
    append(text, "}");
}

void mma_text(const struct mma *mma, char *text)
{
    *text = '\0';
    append(
        text,
        ".version 8.5\n.target sm_90\n.address_size 64\n"
        ".entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c, .param .u64 e)\n{\n"
        ".reg .b32 %%r<2>, %%e<1>;\n.reg .b64 %%p, %%at;\n.reg .b%u %%d<8>, %%a<8>, %%b<8>, "
        "%%c<8>;\nmov.u32 %%r0, %%laneid;\n",
        mma->bits);
    for (unsigned i = 1; i < 4; i++)
        append_moves(text, "ld.global.b%u %%%c%u, [%%p+%u];\n", "dabc"[i], mma -> counts[i],
                     mma -> bits);
    append_moves(text, "ld.global.b%u %%%c%u, [%%p+%u];\n", 'e', 1, 32);
    append(text, "%s ", mma->opcode);
    for (unsigned i = 0; i < 4; i++) {
        append_list(text, "dabc"[i], mma -> counts[i]);
        append(text, "%s", i < 3 ? ", " : mma->tail);
    }
    append(text, ";\n");
    append_moves(text, "st.global.b%1$u [%%p+%4$u], %%%2$c%3$u;\n", 'd', mma->counts[0], mma->bits);
    append(text, "ret;\n}\n");
}

struct machine *mma_machine(const struct mma *mma, void *ret_memory[5])
{
    char text[8192];
    mma_text(mma, text);
    struct machine *machine = machine_create_from(text);
    for (unsigned i = 0; i < 5; i++)
        ret_memory[i] = machine_memory(machine, MMA_MEMORY);
    return machine;
}

void mma_run(struct machine *machine, void *memory[5])
{
    void *params[5];
    for (unsigned i = 0; i < 5; i++)
        params[i] = &memory[i];
    CUresult result = machine_launch(machine, "k", 1, 32, 0, params);
    if (result)
        fail_msg("%d: %s", result, machine->message);
}
