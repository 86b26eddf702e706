/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Families of instructions in all their types, roundings and comparisons. The references are in
 * 128-bit integers and in the host's floating point, on edge values and random ones.
 */
#include "rows.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_ROWS 512

typedef __int128 wide;

static struct row rows[MAX_ROWS];
static unsigned row_count;

static struct row *add_row(unsigned d, unsigned a, unsigned b, unsigned c)
{
    struct row *row = &rows[row_count++];
    assert_true(row_count <= MAX_ROWS);
    *row = (struct row){.sizes = {d, a, b, c}};
    return row;
}

static wide value(const struct row *row, uint64_t bits)
{
    unsigned unused = 64 - row->bits;
    return row->is_signed ? (wide)((int64_t)(bits << unused) >> unused)
                          : (wide)(bits << unused >> unused);
}

/* ---- Integers ---- */

enum {
    ADD,
    SUB,
    MUL_LO,
    MUL_HI,
    MAD_LO,
    MAD_HI,
    DIV,
    REM,
    MIN,
    MAX,
    SAD,
    ABS,
    NEG,
    MUL_WIDE,
    MAD_WIDE,
    INTEGER_COUNT,
};

static const struct {
    const char *name;
    unsigned operands;
    bool signed_only, narrow_only;
} integers[INTEGER_COUNT] = {
    [ADD] = {"add", 2},
    [SUB] = {"sub", 2},
    [MUL_LO] = {"mul.lo", 2},
    [MUL_HI] = {"mul.hi", 2},
    [MAD_LO] = {"mad.lo", 3},
    [MAD_HI] = {"mad.hi", 3},
    [DIV] = {"div", 2},
    [REM] = {"rem", 2},
    [MIN] = {"min", 2},
    [MAX] = {"max", 2},
    [SAD] = {"sad", 3},
    [ABS] = {"abs", 1, .signed_only = true},
    [NEG] = {"neg", 1, .signed_only = true},
    [MUL_WIDE] = {"mul.wide", 2, .narrow_only = true},
    [MAD_WIDE] = {"mad.wide", 3, .narrow_only = true},
};

static uint64_t integer(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    wide x = value(row, a), y = value(row, b), z = value(row, c);
    /* A product of unsigned numbers of 64 bits needs all 128. */
    wide high = (wide)((unsigned __int128)x * (unsigned __int128)y >> row->bits);
    switch (row->op) {
    case ADD:
        return (uint64_t)(x + y);
    case SUB:
        return (uint64_t)(x - y);
    case MUL_LO:
        return (uint64_t)x * (uint64_t)y;
    case MUL_HI:
        return (uint64_t)high;
    case MAD_LO:
        return (uint64_t)x * (uint64_t)y + (uint64_t)z;
    case MAD_HI:
        return (uint64_t)high + (uint64_t)z;
    case DIV:
        return (uint64_t)(x / y);
    case REM:
        return (uint64_t)(x % y);
    case MIN:
        return (uint64_t)(x < y ? x : y);
    case MAX:
        return (uint64_t)(x > y ? x : y);
    case SAD:
        return (uint64_t)((x > y ? x - y : y - x) + z);
    case ABS:
        return (uint64_t)(x < 0 ? -x : x);
    case NEG:
        return (uint64_t)-x;
    case MUL_WIDE:
        return (uint64_t)(x * y);
    default:
        return (uint64_t)(x * y) + c;
    }
}

static bool can_divide(const struct row *row, uint64_t a, uint64_t b)
{
    wide x = value(row, a), y = value(row, b);
    return y != 0 && !(row->is_signed && y == -1 && x == -((wide)1 << (row->bits - 1)));
}

static void add_integers(unsigned bits, bool is_signed)
{
    for (unsigned op = 0; op < INTEGER_COUNT; op++) {
        unsigned operands = integers[op].operands,
                 result = integers[op].narrow_only ? 2 * bits : bits;
        if ((integers[op].signed_only && !is_signed) || result > 64)
            continue;
        struct row *row = add_row(result, bits, operands > 1 ? bits : 0, operands > 2 ? result : 0);
        snprintf(row->opcode, sizeof(row->opcode), "%s.%c%u", integers[op].name,
                 is_signed ? 's' : 'u', bits);
        row->bits = bits;
        row->is_signed = is_signed;
        row->op = op;
        row->reference = integer;
        row->defined = op == DIV || op == REM ? can_divide : NULL;
    }
}

/* ---- Bits ---- */

enum {
    AND,
    OR,
    XOR,
    NOT,
    CNOT,
    SHL,
    SHR,
    POPC,
    CLZ,
    BREV,
    BFIND,
    BFIND_SHIFT,
    BFE,
    SELECT_SIGN,
    BIT_COUNT,
};

static uint64_t shifted(const struct row *row, uint64_t a, uint64_t by)
{
    unsigned shift = (uint32_t)by > row->bits ? row->bits : (uint32_t)by;
    wide x = value(row, a);
    return (uint64_t)(row->op == SHL ? (wide)((unsigned __int128)x << shift) : x >> shift);
}

static uint64_t found_bit(const struct row *row, uint64_t a)
{
    wide x = value(row, a);
    x = x < 0 ? ~x : x;
    for (unsigned i = row->bits; i-- > 0;) {
        if (x >> i & 1)
            return row->op == BFIND_SHIFT ? row->bits - 1 - i : i;
    }
    return UINT32_MAX;
}

/* A field beyond the number is made of its sign; one that begins there as well. */
/* Position and length have 8 bits, but all 32 where the field is of 64 bits. */
static uint64_t field(const struct row *row, uint64_t a, uint64_t from, uint64_t length)
{
    uint32_t mask = row->bits == 64 ? UINT32_MAX : 0xff;
    uint64_t at = from & mask, count = length & mask;
    uint64_t result = 0;
    wide x = value(row, a);
    uint64_t last = at + count - 1 < row->bits - 1 ? at + count - 1 : row->bits - 1;
    bool fill = row->is_signed && count && (x >> last & 1);
    for (unsigned i = 0; i < row->bits; i++) {
        bool bit = i < count && at + i < row->bits ? x >> (at + i) & 1 : fill;
        result |= (uint64_t)bit << i;
    }
    return result;
}

static uint64_t of_bits(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t result = 0, x = a << (64 - row->bits) >> (64 - row->bits);
    switch (row->op) {
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    case NOT:
        return ~a;
    case CNOT:
        return x == 0;
    case SHL:
    case SHR:
        return shifted(row, a, b);
    case POPC:
        for (; x; x >>= 1)
            result += x & 1;
        return result;
    case CLZ:
        for (result = row->bits; x; x >>= 1)
            result--;
        return result;
    case BREV:
        for (unsigned i = 0; i < row->bits; i++)
            result |= (x >> i & 1) << (row->bits - 1 - i);
        return result;
    case BFE:
        return field(row, a, b, c);
    case SELECT_SIGN:
        return (int32_t)c >= 0 ? a : b;
    default:
        return found_bit(row, a);
    }
}

static void add_bits(unsigned op, const char *name, char type, unsigned bits, unsigned d,
                     unsigned b, unsigned c)
{
    struct row *row = add_row(d, bits, b, c);
    snprintf(row->opcode, sizeof(row->opcode), "%s.%c%u%s", name, type, bits,
             op == SELECT_SIGN ? ".s32" : "");
    row->bits = bits;
    row->is_signed = type == 's';
    row->op = op;
    row->reference = of_bits;
}

static void add_all_bits(unsigned bits)
{
    add_bits(AND, "and", 'b', bits, bits, bits, 0);
    add_bits(OR, "or", 'b', bits, bits, bits, 0);
    add_bits(XOR, "xor", 'b', bits, bits, bits, 0);
    add_bits(NOT, "not", 'b', bits, bits, 0, 0);
    add_bits(CNOT, "cnot", 'b', bits, bits, 0, 0);
    add_bits(SHL, "shl", 'b', bits, bits, 32, 0);
    add_bits(SHR, "shr", 'u', bits, bits, 32, 0);
    add_bits(SHR, "shr", 's', bits, bits, 32, 0);
    add_bits(SELECT_SIGN, "slct", 'b', bits, bits, bits, 32);
    if (bits == 16)
        return;
    add_bits(POPC, "popc", 'b', bits, 32, 0, 0);
    add_bits(CLZ, "clz", 'b', bits, 32, 0, 0);
    add_bits(BREV, "brev", 'b', bits, bits, 0, 0);
    for (const char *type = "us"; *type; type++) {
        add_bits(BFIND, "bfind", *type, bits, 32, 0, 0);
        add_bits(BFIND_SHIFT, "bfind.shiftamt", *type, bits, 32, 0, 0);
        add_bits(BFE, "bfe", *type, bits, bits, 32, 32);
    }
}

/* ---- Comparisons ---- */

static const char *const comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

static bool holds(unsigned op, int order, bool unordered)
{
    switch (op) {
    case 0:
    case 6:
        return unordered ? op == 6 : order == 0;
    case 1:
    case 7:
        return unordered ? op == 7 : order != 0;
    case 2:
    case 8:
        return unordered ? op == 8 : order < 0;
    case 3:
    case 9:
        return unordered ? op == 9 : order <= 0;
    case 4:
    case 10:
        return unordered ? op == 10 : order > 0;
    case 5:
    case 11:
        return unordered ? op == 11 : order >= 0;
    default:
        return unordered == (op == 13);
    }
}

static uint64_t compared(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    wide x = value(row, a), y = value(row, b);
    return holds(row->op, x < y ? -1 : x > y, false);
}

static float f32(uint64_t bits)
{
    float x;
    uint32_t low = (uint32_t)bits;
    memcpy(&x, &low, sizeof(x));
    return x;
}

static double f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint64_t compared_f(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    double x = row->bits == 32 ? (double)f32(a) : f64(a),
           y = row->bits == 32 ? (double)f32(b) : f64(b);
    return holds(row->op, x < y ? -1 : x > y, isnan(x) || isnan(y));
}

static void add_comparisons(char type, unsigned bits)
{
    bool is_float = type == 'f';
    for (unsigned op = 0; op < (is_float ? 14u : 6u); op++) {
        struct row *row = add_row(32, bits, bits, 0);
        snprintf(row->opcode, sizeof(row->opcode), "setp.%s.%c%u", comparisons[op], type, bits);
        row->bits = bits;
        row->is_signed = type == 's';
        row->is_comparison = true;
        row->op = op;
        row->reference = is_float ? compared_f : compared;
    }
}

/* ---- Floating point ---- */

static const char *const roundings[] = {"rn", "rz", "rm", "rp"};
static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
static const char *const reals[] = {"add", "sub", "mul", "fma", "div", "rcp", "sqrt"};
static const unsigned real_operands[] = {2, 2, 2, 3, 2, 1, 1};

/* Volatile, so that nothing is computed before or after the rounding is what it should be. */
#define COMPUTE(name, type, fused, root)                  \
    static type name(unsigned op, type a, type b, type c) \
    {                                                     \
        volatile type x = a, y = b;                       \
        volatile type result = op == 0   ? x + y          \
                               : op == 1 ? x - y          \
                               : op == 2 ? x * y          \
                               : op == 3 ? fused(x, y, c) \
                               : op == 4 ? x / y          \
                               : op == 5 ? 1 / x          \
                                         : root(x);       \
        return result;                                    \
    }
COMPUTE(compute_f32, float, fmaf, sqrtf)
COMPUTE(compute_f64, double, fma, sqrt)

static uint64_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return isnan(x) ? 0x7fffffff : bits;
}

static uint64_t bits_of_wide(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return isnan(x) ? UINT64_MAX : bits;
}

static uint64_t real(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    fesetround(row->rounding);
    uint64_t result = row->bits == 32 ? bits_of(compute_f32(row->op, f32(a), f32(b), f32(c)))
                                      : bits_of_wide(compute_f64(row->op, f64(a), f64(b), f64(c)));
    fesetround(FE_TONEAREST);
    return result;
}

static void add_reals(unsigned bits)
{
    for (unsigned op = 0; op < 7; op++) {
        for (unsigned rounding = 0; rounding < 4; rounding++) {
            unsigned operands = real_operands[op];
            struct row *row = add_row(bits, bits, operands > 1 ? bits : 0, operands > 2 ? bits : 0);
            snprintf(row->opcode, sizeof(row->opcode), "%s.%s.f%u", reals[op], roundings[rounding],
                     bits);
            row->bits = bits;
            row->op = op;
            row->rounding = modes[rounding];
            row->reference = real;
            row->is_real = true;
        }
    }
}

/* ---- Conversions ---- */

/* From floating point: what is no number is zero, what is too large the largest. */
static uint64_t to_integer(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    volatile double x = row->sizes[1] == 32 ? (double)f32(a) : f64(a);
    double low = row->is_signed ? -ldexp(1, (int)row->bits - 1) : 0;
    double high = ldexp(1, (int)row->bits - row->is_signed);
    fesetround(row->rounding);
    x = nearbyint(x);
    fesetround(FE_TONEAREST);
    if (isnan(x))
        return row->bits == 64 ? 1ull << 63 : 0;
    if (x >= high)
        return row->is_signed ? (1ull << (row->bits - 1)) - 1 : UINT64_MAX >> (64 - row->bits);
    if (x <= low)
        return row->is_signed ? -(1ull << (row->bits - 1)) : 0;
    return row->is_signed ? (uint64_t)(int64_t)x : (uint64_t)x;
}

/* The hardware's answer to what is no number differs between the types; not of interest here. */
static bool is_number(const struct row *row, uint64_t a, uint64_t b)
{
    return row->sizes[1] == 32 ? !isnan(f32(a)) : !isnan(f64(a));
}

static uint64_t from_integer(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    wide x = value(row, a);
    fesetround(row->rounding);
    volatile int64_t with_sign = (int64_t)x;
    volatile uint64_t without = (uint64_t)x;
    /* Clang makes a double of an unsigned number by a subtraction, which rounds 0 down to -0. */
    bool is_signed = row->is_signed || without == 0;
    volatile float narrow = is_signed ? (float)with_sign : (float)without;
    volatile double wide_one = is_signed ? (double)with_sign : (double)without;
    fesetround(FE_TONEAREST);
    return row->sizes[0] == 32 ? bits_of(narrow) : bits_of_wide(wide_one);
}

static void add_conversions(unsigned real_bits, char type, unsigned bits)
{
    for (unsigned rounding = 0; rounding < 4; rounding++) {
        struct row *to = add_row(bits, real_bits, 0, 0), *from = add_row(real_bits, bits, 0, 0);
        snprintf(to->opcode, sizeof(to->opcode), "cvt.%si.%c%u.f%u", roundings[rounding], type,
                 bits, real_bits);
        snprintf(from->opcode, sizeof(from->opcode), "cvt.%s.f%u.%c%u", roundings[rounding],
                 real_bits, type, bits);
        to->bits = from->bits = bits;
        to->is_signed = from->is_signed = type == 's';
        to->rounding = from->rounding = modes[rounding];
        to->reference = to_integer;
        to->defined = is_number;
        from->reference = from_integer;
        from->is_real = true;
    }
}

static void fill_rows(void)
{
    for (unsigned bits = 16; bits <= 64; bits *= 2) {
        add_integers(bits, false);
        add_integers(bits, true);
        add_all_bits(bits);
        add_comparisons('u', bits);
        add_comparisons('s', bits);
    }
    for (unsigned bits = 32; bits <= 64; bits *= 2) {
        add_reals(bits);
        add_comparisons('f', bits);
        for (unsigned size = 16; size <= 64; size *= 2) {
            add_conversions(bits, 'u', size);
            add_conversions(bits, 's', size);
        }
    }
}

static void test_rows(void **state)
{
    fill_rows();
    rows_check(rows, row_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
