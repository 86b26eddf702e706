/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions against references written without looking at the handlers: bit by bit, or in wider
 * types.
 *
 * Each row is one PTX instruction. A kernel around it reads a, b and c and writes d, for every
 * combination of edge values and for random ones.
 */
#include "machine.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t (*reference_fn)(uint64_t a, uint64_t b, uint64_t c);

struct row {
    const char *opcode;
    const char *d, *a, *b, *c; /* types; NULL where there is no operand */
    reference_fn reference;
};

static float f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, 4);
    return x;
}

static uint64_t of32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return x != x ? 0x7fffffff : bits;
}

static double f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

static uint64_t of64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return x != x ? UINT64_MAX : bits;
}

#define S32(x) ((int64_t)(int32_t)(x))
#define U32(x) ((uint64_t)(uint32_t)(x))
#define REF(name) static uint64_t name(uint64_t a, uint64_t b, uint64_t c)

REF(add32)
{
    return U32(a + b);
}
REF(sub64)
{
    return a - b;
}
REF(add_sat)
{
    int64_t sum = S32(a) + S32(b);
    return U32(sum > 2147483647 ? 2147483647 : sum < -2147483648ll ? -2147483648ll : sum);
}
REF(mul_hi_u32)
{
    return U32(U32(a) * U32(b) >> 32);
}
REF(mul_hi_s32)
{
    return U32(S32(a) * S32(b) >> 32);
}
REF(mul_wide_s32)
{
    return (uint64_t)(S32(a) * S32(b));
}
REF(mul_hi_u64)
{
    uint64_t a0 = U32(a), a1 = a >> 32, b0 = U32(b), b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((U32(middle) + a0 * b1) >> 32);
}
REF(mul_hi_s64)
{
    return mul_hi_u64(a, b, c) - ((int64_t)a < 0 ? b : 0) - ((int64_t)b < 0 ? a : 0);
}
REF(mad_lo_s32)
{
    return U32(S32(a) * S32(b) + S32(c));
}
REF(mad_wide_u32)
{
    return U32(a) * U32(b) + c;
}
REF(mul24)
{
    return U32((a & 0xffffff) * (b & 0xffffff));
}
REF(div_s32)
{
    return S32(b) == 0 ? U32(-1) : U32(S32(a) / S32(b));
}
REF(rem_u64)
{
    return b ? a % b : a;
}
REF(sad_s32)
{
    return U32(S32(c) + llabs(S32(a) - S32(b)));
}
REF(min_s32)
{
    return U32(S32(a) < S32(b) ? a : b);
}
REF(max_u32)
{
    return U32(a) > U32(b) ? U32(a) : U32(b);
}
REF(popc64)
{
    uint64_t count = 0;
    for (int i = 0; i < 64; i++)
        count += a >> i & 1;
    return count;
}
REF(clz32)
{
    uint64_t count = 0;
    for (int i = 31; i >= 0 && !(a >> i & 1); i--)
        count++;
    return count;
}
REF(bfind_s32)
{
    for (int i = 31; i >= 0; i--) {
        if ((a >> i & 1) != (a >> 31 & 1))
            return (uint64_t)i;
    }
    return U32(-1);
}
REF(brev32)
{
    uint64_t result = 0;
    for (int i = 0; i < 32; i++)
        result |= (a >> i & 1) << (31 - i);
    return result;
}
static uint64_t extract(uint64_t x, uint64_t position, uint64_t length, unsigned width,
                        bool is_signed)
{
    uint64_t last = position + length - 1 < width - 1 ? position + length - 1 : width - 1;
    uint64_t sign = is_signed && length ? x >> last & 1 : 0, result = 0;
    for (unsigned i = 0; i < width; i++)
        result |= (i < length && position + i < width ? x >> (position + i) & 1 : sign) << i;
    return result;
}
REF(bfe_u32)
{
    return extract(a, b & 0xff, c & 0xff, 32, false);
}
REF(bfe_s32)
{
    return extract(a, b & 0xff, c & 0xff, 32, true);
}
REF(bfe_s64)
{
    return extract(a, U32(b), U32(c), 64, true);
}
REF(shl32)
{
    return U32(b) > 31 ? 0 : U32(a << (b & 31));
}
REF(shr_s32)
{
    return U32(S32(a) >> (U32(b) > 31 ? 31 : b & 31));
}
REF(shr_u64)
{
    return U32(b) > 63 ? 0 : a >> (b & 63);
}
REF(shf_l_wrap)
{
    return U32(c & 31 ? b << (c & 31) | U32(a) >> (32 - (c & 31)) : b);
}
REF(shf_r_clamp)
{
    unsigned n = U32(c) > 32 ? 32 : (unsigned)c;
    return n == 32 ? U32(b) : n == 0 ? U32(a) : U32(U32(a) >> n | b << (32 - n));
}
REF(prmt)
{
    uint64_t result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned selector = c >> (4 * i) & 15;
        uint64_t byte = ((selector & 4 ? b : a) >> (8 * (selector & 3))) & 0xff;
        if (selector & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}
REF(lop3_96)
{
    uint64_t result = 0;
    for (int i = 0; i < 32; i++)
        result |= (uint64_t)(0x96 >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1)
                  << i;
    return result;
}
REF(dp4a_us)
{
    int64_t sum = S32(c);
    for (int i = 0; i < 32; i += 8)
        sum += (int64_t)(uint8_t)(a >> i) * (int8_t)(b >> i);
    return U32(sum);
}

REF(add_f32)
{
    return of32(f32(a) + f32(b));
}
REF(mul_f32)
{
    return of32(f32(a) * f32(b));
}
REF(fma_f32)
{
    return of32(fmaf(f32(a), f32(b), f32(c)));
}
REF(div_f32)
{
    return of32(f32(a) / f32(b));
}
REF(rcp_f32)
{
    return of32(1 / f32(a));
}
REF(sqrt_f32)
{
    return of32(sqrtf(f32(a)));
}
REF(add_rz)
{
    fesetround(FE_TOWARDZERO);
    volatile float x = f32(a), y = f32(b), sum = x + y;
    fesetround(FE_TONEAREST);
    return of32(sum);
}
REF(fma_rp)
{
    fesetround(FE_UPWARD);
    volatile float x = f32(a), y = f32(b), z = f32(c);
    volatile float sum = fmaf(x, y, z);
    fesetround(FE_TONEAREST);
    return of32(sum);
}
static float flushed(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}
REF(mul_ftz)
{
    return of32(flushed(flushed(f32(a)) * flushed(f32(b))));
}
REF(add_sat_f32)
{
    float sum = f32(a) + f32(b);
    return of32(sum != sum || sum < 0 ? 0 : sum > 1 ? 1 : sum == 0 ? 0 : sum);
}
REF(min_f32)
{
    float x = f32(a), y = f32(b);
    if (x != x || y != y)
        return x != x ? of32(y) : of32(x);
    return x == y ? (signbit(x) ? of32(x) : of32(y)) : of32(x < y ? x : y);
}
REF(max_f32)
{
    float x = f32(a), y = f32(b);
    if (x != x || y != y)
        return x != x ? of32(y) : of32(x);
    return x == y ? (signbit(x) ? of32(y) : of32(x)) : of32(x > y ? x : y);
}
REF(neg_f32)
{
    return U32(a ^ 0x80000000);
}
REF(add_f64)
{
    return of64(f64(a) + f64(b));
}
REF(fma_f64)
{
    return of64(fma(f64(a), f64(b), f64(c)));
}
REF(div_f64)
{
    return of64(f64(a) / f64(b));
}
REF(cvt_s32_f32)
{
    double x = f32(a);
    return x != x ? 0
                  : U32(x >= 2147483647      ? 2147483647
                        : x <= -2147483648.0 ? -2147483648ll
                                             : (int64_t)x);
}
REF(cvt_rni_s32_f32)
{
    double x = rint(f32(a));
    return x != x ? 0
                  : U32(x >= 2147483647      ? 2147483647
                        : x <= -2147483648.0 ? -2147483648ll
                                             : (int64_t)x);
}
REF(cvt_u8_f32)
{
    double x = f32(a);
    return x != x || x <= 0 ? 0 : x >= 255 ? 255 : (uint64_t)x;
}
REF(cvt_s64_f64)
{
    double x = f64(a);
    if (x != x)
        return 1ull << 63;
    return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? 1ull << 63 : (uint64_t)(int64_t)x;
}
REF(cvt_f32_s64)
{
    return of32((float)(int64_t)a);
}
REF(cvt_f32_f64)
{
    return of32((float)f64(a));
}
REF(cvt_f64_f32)
{
    return of64((double)f32(a));
}
REF(cvt_s8)
{
    return U32((int32_t)(int8_t)a);
}
REF(cvt_sat_u8_s32)
{
    return S32(a) < 0 ? 0 : S32(a) > 255 ? 255 : U32(a);
}
/* Half to float, built from the definition. */
REF(cvt_f32_f16)
{
    int exponent = a >> 10 & 31;
    float mantissa = (float)(a & 1023);
    float value = exponent == 0 ? ldexpf(mantissa, -24) : ldexpf(mantissa + 1024, exponent - 25);
    if (exponent == 31)
        return (a & 1023) ? 0x7fffffff : (a & 0x8000) ? 0xff800000 : 0x7f800000;
    return of32(a & 0x8000 ? -value : value);
}
/* Float to half: the nearest of all halves, even on a tie. */
REF(cvt_f16_f32)
{
    float x = f32(a), magnitude = fabsf(x);
    uint64_t sign = signbit(x) ? 0x8000 : 0;
    if (x != x)
        return 0x7fff;
    if (magnitude >= 65520)
        return sign | 0x7c00;
    int exponent;
    frexpf(magnitude, &exponent);
    double step = ldexp(1, (exponent < -13 ? -13 : exponent) - 11);
    double rounded = rint(magnitude / step) * step;
    if (rounded < 0x1p-14)
        return sign | (uint64_t)(rounded / 0x1p-24);
    frexp(rounded, &exponent);
    return sign |
           (uint64_t)((exponent + 14) << 10 | (int)(rounded / ldexp(1, exponent - 11) - 1024));
}
REF(setp_ltu)
{
    return !(f32(a) >= f32(b));
}
REF(slct)
{
    return S32(c) >= 0 ? U32(a) : U32(b);
}

static const struct row rows[] = {
    {"add.s32", "b32", "b32", "b32", NULL, add32},
    {"sub.u64", "b64", "b64", "b64", NULL, sub64},
    {"add.sat.s32", "b32", "b32", "b32", NULL, add_sat},
    {"mul.hi.u32", "b32", "b32", "b32", NULL, mul_hi_u32},
    {"mul.hi.s32", "b32", "b32", "b32", NULL, mul_hi_s32},
    {"mul.wide.s32", "b64", "b32", "b32", NULL, mul_wide_s32},
    {"mul.hi.u64", "b64", "b64", "b64", NULL, mul_hi_u64},
    {"mul.hi.s64", "b64", "b64", "b64", NULL, mul_hi_s64},
    {"mad.lo.s32", "b32", "b32", "b32", "b32", mad_lo_s32},
    {"mad.wide.u32", "b64", "b32", "b32", "b64", mad_wide_u32},
    {"mul24.lo.u32", "b32", "b32", "b32", NULL, mul24},
    {"div.s32", "b32", "b32", "b32", NULL, div_s32},
    {"rem.u64", "b64", "b64", "b64", NULL, rem_u64},
    {"sad.s32", "b32", "b32", "b32", "b32", sad_s32},
    {"min.s32", "b32", "b32", "b32", NULL, min_s32},
    {"max.u32", "b32", "b32", "b32", NULL, max_u32},
    {"popc.b64", "b32", "b64", NULL, NULL, popc64},
    {"clz.b32", "b32", "b32", NULL, NULL, clz32},
    {"bfind.s32", "b32", "b32", NULL, NULL, bfind_s32},
    {"brev.b32", "b32", "b32", NULL, NULL, brev32},
    {"bfe.u32", "b32", "b32", "b32", "b32", bfe_u32},
    {"bfe.s32", "b32", "b32", "b32", "b32", bfe_s32},
    {"bfe.s64", "b64", "b64", "b32", "b32", bfe_s64},
    {"shl.b32", "b32", "b32", "b32", NULL, shl32},
    {"shr.s32", "b32", "b32", "b32", NULL, shr_s32},
    {"shr.u64", "b64", "b64", "b32", NULL, shr_u64},
    {"shf.l.wrap.b32", "b32", "b32", "b32", "b32", shf_l_wrap},
    {"shf.r.clamp.b32", "b32", "b32", "b32", "b32", shf_r_clamp},
    {"prmt.b32", "b32", "b32", "b32", "b32", prmt},
    {"lop3.b32 0x96", "b32", "b32", "b32", "b32", lop3_96},
    {"dp4a.u32.s32", "b32", "b32", "b32", "b32", dp4a_us},
    {"add.f32", "f32", "f32", "f32", NULL, add_f32},
    {"mul.rn.f32", "f32", "f32", "f32", NULL, mul_f32},
    {"fma.rn.f32", "f32", "f32", "f32", "f32", fma_f32},
    {"div.rn.f32", "f32", "f32", "f32", NULL, div_f32},
    {"rcp.rn.f32", "f32", "f32", NULL, NULL, rcp_f32},
    {"sqrt.rn.f32", "f32", "f32", NULL, NULL, sqrt_f32},
    {"add.rz.f32", "f32", "f32", "f32", NULL, add_rz},
    {"fma.rp.f32", "f32", "f32", "f32", "f32", fma_rp},
    {"mul.ftz.f32", "f32", "f32", "f32", NULL, mul_ftz},
    {"add.sat.f32", "f32", "f32", "f32", NULL, add_sat_f32},
    {"min.f32", "f32", "f32", "f32", NULL, min_f32},
    {"max.f32", "f32", "f32", "f32", NULL, max_f32},
    {"neg.f32", "b32", "f32", NULL, NULL, neg_f32},
    {"add.f64", "f64", "f64", "f64", NULL, add_f64},
    {"fma.rn.f64", "f64", "f64", "f64", "f64", fma_f64},
    {"div.rn.f64", "f64", "f64", "f64", NULL, div_f64},
    {"cvt.rzi.s32.f32", "b32", "f32", NULL, NULL, cvt_s32_f32},
    {"cvt.rni.s32.f32", "b32", "f32", NULL, NULL, cvt_rni_s32_f32},
    {"cvt.rzi.u8.f32", "b32", "f32", NULL, NULL, cvt_u8_f32},
    {"cvt.rzi.s64.f64", "b64", "f64", NULL, NULL, cvt_s64_f64},
    {"cvt.rn.f32.s64", "f32", "b64", NULL, NULL, cvt_f32_s64},
    {"cvt.rn.f32.f64", "f32", "f64", NULL, NULL, cvt_f32_f64},
    {"cvt.f64.f32", "f64", "f32", NULL, NULL, cvt_f64_f32},
    {"cvt.s8.s32", "b32", "b32", NULL, NULL, cvt_s8},
    {"cvt.sat.u8.s32", "b32", "b32", NULL, NULL, cvt_sat_u8_s32},
    {"cvt.f32.f16", "f32", "b16", NULL, NULL, cvt_f32_f16},
    {"cvt.rn.f16.f32", "b16", "f32", NULL, NULL, cvt_f16_f32},
    {"setp.ltu.f32", "pred", "f32", "f32", NULL, setp_ltu},
    {"slct.b32.s32", "b32", "b32", "b32", "b32", slct},
};

#define COUNT 4096

static unsigned size_of(const char *type)
{
    return strcmp(type, "pred") == 0 ? 4 : (unsigned)atoi(type + 1) / 8;
}

/* A kernel that loads a, b and c, does the instruction and stores d. */
static void write_kernel(const struct row *row, char *text, size_t size)
{
    const char *types[3] = {row->a, row->b, row->c};
    char opcode[64], last[32] = "";
    bool predicate = strcmp(row->d, "pred") == 0;
    snprintf(opcode, sizeof(opcode), "%s", row->opcode);
    char *blank = strchr(opcode, ' ');
    if (blank) {
        snprintf(last, sizeof(last), ", %s", blank + 1);
        *blank = '\0';
    }
    int at = snprintf(
        text, size,
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n{\n"
        ".reg .pred %%p;\n.reg .b64 %%at<8>;\n.reg .b32 %%r<8>;\n.reg .%s %%d;\n"
        "mov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, %%ctaid.x;\nmov.u32 %%r2, %%ntid.x;\n"
        "mad.lo.u32 %%r0, %%r1, %%r2, %%r0;\n",
        predicate ? "b32" : row->d);
    for (int i = 0; i < 3 && types[i]; i++)
        at += snprintf(
            text + at, size - at,
            ".reg .%s %%%c;\nld.param.u64 %%at%d, [p%c];\nmad.wide.u32 %%at%d, %%r0, 8, %%at%d;\n"
            "ld.global.b%u %%%c, [%%at%d];\n",
            types[i], 'a' + i, i, 'a' + i, i, i, 8 * size_of(types[i]), 'a' + i, i);
    at += snprintf(text + at, size - at, "%s %s", opcode, predicate ? "%p" : "%d");
    for (int i = 0; i < 3 && types[i]; i++)
        at += snprintf(text + at, size - at, ", %%%c", 'a' + i);
    snprintf(text + at, size - at,
             "%s;\n%sld.param.u64 %%at3, [pd];\nmad.wide.u32 %%at3, %%r0, 8, %%at3;\nst.global.b%u "
             "[%%at3], %%d;\nret;\n}\n",
             last, predicate ? "selp.b32 %d, 1, 0, %p;\n" : "", 8 * size_of(row->d));
}

static const uint64_t edges[] = {
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0x7c00,
    0xfc01,
    0x3c00,
    0x0400,
    0x03ff,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x3f800000,
    0xbf800000,
    0x7f800000,
    0xff800000,
    0x7fc00000,
    0x00000001,
    0x807fffff,
    0x00800000,
    0x4f000000,
    0xcf000000,
    0x477fefff,
    0x33000000,
    0x33000001,
    0x387fc000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
    0x3ff0000000000000,
    0x7ff0000000000000,
    0xfff0000000000000,
    0x7ff8000000000000,
    0x0000000000000001,
    0x43e0000000000000,
    0x36a0000000000000,
    0x47efffffe0000000,
};
#define EDGES (sizeof(edges) / sizeof(edges[0]))

static void fill_inputs(uint64_t *a, uint64_t *b, uint64_t *c)
{
    uint64_t seed = 7;
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t random[3];
        for (int j = 0; j < 3; j++)
            random[j] = (uint64_t)unit_random(&seed) << 33 ^ (uint64_t)unit_random(&seed) << 16 ^
                        unit_random(&seed);
        bool edge = i < EDGES * EDGES;
        a[i] = edge ? edges[i % EDGES] : random[0];
        b[i] = edge ? edges[i / EDGES] : random[1] >> (i % 3 ? 0 : 58);
        c[i] = edge ? edges[(i * 7) % EDGES] : random[2] >> (i % 5 ? 0 : 58);
    }
}

static uint64_t masked(uint64_t value, unsigned size)
{
    return size == 8 ? value : value & ((1ull << 8 * size) - 1);
}

static uint64_t canonical(const struct row *row, uint64_t value)
{
    if (strcmp(row->d, "f64") == 0)
        return of64(f64(value));
    return masked(value, size_of(row->d));
}

static void test_row(void **state)
{
    const struct row *row = *state;
    char text[4096];
    write_kernel(row, text, sizeof(text));
    struct machine *machine = machine_create_from(text);
    uint64_t *memory[4];
    for (int i = 0; i < 4; i++)
        memory[i] = machine_memory(machine, COUNT * 8);
    fill_inputs(memory[1], memory[2], memory[3]);
    CUresult result = machine_launch(machine, "k", COUNT / 128, 128, 0,
                                     (void *[]){&memory[0], &memory[1], &memory[2], &memory[3]});
    if (result != CUDA_SUCCESS)
        fail_msg("%s: %s", row->opcode, machine->message);
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t a = masked(memory[1][i], size_of(row->a));
        uint64_t b = row->b ? masked(memory[2][i], size_of(row->b)) : 0;
        uint64_t c = row->c ? masked(memory[3][i], size_of(row->c)) : 0;
        uint64_t expected = canonical(row, row->reference(a, b, c));
        if (canonical(row, memory[0][i]) != expected)
            fail_msg("%s of %llx, %llx, %llx: %llx, not %llx", row->opcode, (unsigned long long)a,
                     (unsigned long long)b, (unsigned long long)c, (unsigned long long)memory[0][i],
                     (unsigned long long)expected);
    }
    machine_destroy(machine);
}

int main(void)
{
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    struct CMUnitTest tests[ROWS];
    for (unsigned i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].opcode, .test_func = test_row, .initial_state = (void *)&rows[i]};
    return _cmocka_run_group_tests("arithmetic", tests, ROWS, NULL, NULL);
}
