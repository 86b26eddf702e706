/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modifiers that few programs use: .relu and .xorsign.abs of min and max, .satfinite of cvt, .ftz
 * of halves. Also lop3 with a predicate, and cp.async that ignores its source.
 */
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Against references, on all kinds of numbers ---- */

enum {
    IS_MAX = 1,
    GIVES_NAN = 2,
    FLUSHES = 4,
};

static int64_t limit(unsigned op, int64_t a, int64_t b)
{
    int64_t chosen = ((op & IS_MAX) != 0) == (a > b) ? a : b;
    return chosen < 0 ? 0 : chosen;
}

static uint64_t relu_s32(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    return (uint64_t)limit(row->op, (int32_t)a, (int32_t)b);
}

static uint64_t relu_s16x2(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t low = (uint64_t)limit(row->op, (int16_t)a, (int16_t)b);
    return low | (uint64_t)limit(row->op, (int16_t)(a >> 16), (int16_t)(b >> 16)) << 16;
}

static float f32(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float x;
    memcpy(&x, &word, sizeof(x));
    return x;
}

/* Of magnitudes the lesser bits are the lesser number. */
static uint64_t xorsign(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    uint32_t x = (uint32_t)a & 0x7fffffff, y = (uint32_t)b & 0x7fffffff;
    uint32_t sign = (uint32_t)(a ^ b) & 0x80000000;
    if (row->op & FLUSHES) {
        x = x < 0x00800000 ? 0 : x;
        y = y < 0x00800000 ? 0 : y;
    }
    bool no_x = isnan(f32(x)), no_y = isnan(f32(y));
    if ((no_x && no_y) || ((row->op & GIVES_NAN) && (no_x || no_y)))
        return 0x7fffffff;
    uint32_t least = no_x ? y : no_y ? x : x < y ? x : y;
    uint32_t most = no_x ? y : no_y ? x : x < y ? y : x;
    return ((row->op & IS_MAX) ? most : least) | sign;
}

static int64_t product24(uint64_t a, uint64_t b, bool is_signed)
{
    if (!is_signed)
        return (int64_t)((a & 0xffffff) * (b & 0xffffff) >> 16);
    int64_t x = (int64_t)(a << 40) >> 40, y = (int64_t)(b << 40) >> 40;
    return x * y >> 16;
}

static uint64_t mad24_hi(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    return (uint64_t)product24(a, b, row->is_signed) + c;
}

static uint64_t mad24_hi_sat(const struct row *row, uint64_t a, uint64_t b, uint64_t c)
{
    int64_t sum = product24(a, b, true) + (int32_t)c;
    return (uint64_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

#define THREE         \
    {                 \
        32, 32, 32, 0 \
    }
#define FOUR           \
    {                  \
        32, 32, 32, 32 \
    }
static const struct row rows[] = {
    {"min.relu.s32", THREE, .reference = relu_s32},
    {"max.s32.relu", THREE, .op = IS_MAX, .reference = relu_s32},
    {"min.s16x2.relu", THREE, .reference = relu_s16x2},
    {"max.relu.s16x2", THREE, .op = IS_MAX, .reference = relu_s16x2},
    {"min.xorsign.abs.f32", THREE, .reference = xorsign},
    {"max.xorsign.abs.f32", THREE, .op = IS_MAX, .reference = xorsign},
    {"min.NaN.xorsign.abs.f32", THREE, .op = GIVES_NAN, .reference = xorsign},
    {"max.ftz.xorsign.abs.f32", THREE, .op = IS_MAX | FLUSHES, .reference = xorsign},
    {"min.ftz.NaN.xorsign.abs.f32", THREE, .op = GIVES_NAN | FLUSHES, .reference = xorsign},
    {"mad24.hi.u32", FOUR, .reference = mad24_hi},
    {"mad24.hi.s32", FOUR, .is_signed = true, .reference = mad24_hi},
    {"mad24.hi.sat.s32", FOUR, .reference = mad24_hi_sat},
};

static void test_rows(void **state)
{
    rows_check(rows, sizeof(rows) / sizeof(rows[0]));
}

/* ---- One by one ---- */

struct one {
    const char *opcode;
    unsigned sizes[3]; /* bits of d, a, b; 0 where there is no b */
    uint32_t a, b, expected;
};

static const struct one ones[] = {
    /* What is less than the smallest normal half is none with .ftz, whether it comes or goes. */
    {"add.rn.f16", {16, 16, 16}, 0x0400, 0x8401, 0x8001},
    {"add.rn.ftz.f16", {16, 16, 16}, 0x0400, 0x8401, 0x8000},
    {"add.ftz.f16", {16, 16, 16}, 0x03ff, 0x0400, 0x0400},
    {"sub.ftz.f16", {16, 16, 16}, 0x0400, 0x0401, 0x8000},
    {"mul.ftz.f16", {16, 16, 16}, 0x0400, 0x3800, 0x0000},
    {"mul.f16", {16, 16, 16}, 0x0400, 0x3800, 0x0200},
    {"mul.ftz.f16x2", {32, 32, 32}, 0x84003c00, 0x38003c00, 0x80003c00},
    {"abs.ftz.f16", {16, 16}, 0x8001, 0, 0x0000},
    {"neg.ftz.f16", {16, 16}, 0x0001, 0, 0x8000},
    {"neg.ftz.f16x2", {32, 32}, 0x00013c00, 0, 0x8000bc00},
    {"min.ftz.NaN.f16", {16, 16, 16}, 0x0001, 0x3c00, 0x0000},
    {"min.NaN.f16", {16, 16, 16}, 0x0001, 0x3c00, 0x0001},
    /* No half is so small that it would be no normal f32. */
    {"cvt.ftz.f32.f16", {32, 16}, 0x0001, 0, 0x33800000},
    {"cvt.ftz.f32.bf16", {32, 16}, 0x8001, 0, 0x80000000},
    {"cvt.f32.bf16", {32, 16}, 0x8001, 0, 0x80010000},
    /* Signs of both, and the lesser or greater magnitude. */
    {"min.xorsign.abs.f16", {16, 16, 16}, 0xc000, 0x3c00, 0xbc00},
    {"max.xorsign.abs.f16", {16, 16, 16}, 0xc000, 0xbc00, 0x4000},
    {"min.NaN.xorsign.abs.f16", {16, 16, 16}, 0x7e00, 0x3c00, 0x7fff},
    {"min.xorsign.abs.f16", {16, 16, 16}, 0x7e00, 0xbc00, 0xbc00},
    {"max.ftz.xorsign.abs.f16", {16, 16, 16}, 0x8001, 0x0002, 0x8000},
    {"max.xorsign.abs.bf16", {16, 16, 16}, 0xc000, 0x3f80, 0xc000},
    {"min.xorsign.abs.f16x2", {32, 32, 32}, 0xc0003c00, 0x3c00c000, 0xbc00bc00},
    {"max.NaN.xorsign.abs.bf16x2", {32, 32, 32}, 0x7fc0c000, 0x3f803f80, 0x7fffc000},
    /* .satfinite: infinities and what is too large become the largest number, NaN stays. */
    {"cvt.rn.satfinite.f16.f32", {16, 32}, 0x7f800000, 0, 0x7bff},
    {"cvt.rn.satfinite.f16.f32", {16, 32}, 0xc9742400, 0, 0xfbff},
    {"cvt.rn.satfinite.f16.f32", {16, 32}, 0x3f800000, 0, 0x3c00},
    {"cvt.rn.satfinite.f16.f32", {16, 32}, 0x7fc00000, 0, 0x7fff},
    {"cvt.rn.satfinite.relu.f16.f32", {16, 32}, 0xff800000, 0, 0x0000},
    {"cvt.rz.satfinite.bf16.f32", {16, 32}, 0xff800000, 0, 0xff7f},
    {"cvt.rn.satfinite.bf16.f32", {16, 32}, 0x7f7fffff, 0, 0x7f7f},
    {"cvt.rn.satfinite.f16x2.f32", {32, 32, 32}, 0x7f800000, 0xff800000, 0x7bfffbff},
    {"cvt.rz.satfinite.relu.bf16x2.f32", {32, 32, 32}, 0x7f800000, 0xff800000, 0x7f7f0000},
    {"set.lt.u16.f16", {16, 16, 16}, 0x3c00, 0x4000, 0xffff},
    {"set.gt.s16.bf16", {16, 16, 16}, 0x3c00, 0x4000, 0x0000},
};
#define ONES (sizeof(ones) / sizeof(ones[0]))

static void append_one(char *text, const struct one *one, unsigned number)
{
    unsigned d = one->sizes[0], a = one->sizes[1], b = one->sizes[2] ? one->sizes[2] : 32;
    text += strlen(text);
    text += sprintf(text,
                    ".reg .b%u %%d%u; .reg .b%u %%a%u; .reg .b%u %%b%u;\n"
                    "mov.b%u %%a%u, 0x%x;\nmov.b%u %%b%u, 0x%x;\n%s %%d%u, %%a%u",
                    d, number, a, number, b, number, a, number, one->a, b, number, one->b,
                    one->opcode, number, number);
    if (one->sizes[2])
        text += sprintf(text, ", %%b%u", number);
    sprintf(text, ";\nst.global.b%u [%%p+%u], %%d%u;\n", d, 4 * number, number);
}

static void test_one_by_one(void **state)
{
    static char text[65536] = ".version 8.6\n.target sm_90\n.address_size 64\n"
                              ".entry k(.param .u64 out)\n{\n.reg .b64 %p;\n"
                              "ld.param.u64 %p, [out];\n";
    for (unsigned i = 0; i < ONES; i++)
        append_one(text, &ones[i], i);
    strcat(text, "ret;\n}\n");
    struct machine *machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, ONES * sizeof(*out));
    assert_int_equal(machine_launch(machine, "k", 1, 32, 0, (void *[]){&out}), CUDA_SUCCESS);
    for (unsigned i = 0; i < ONES; i++) {
        if (out[i] != ones[i].expected)
            fail_msg("%s of %x, %x: %x, not %x", ones[i].opcode, ones[i].a, ones[i].b, out[i],
                     ones[i].expected);
    }
    machine_destroy(machine);
}

/* ---- Predicates ---- */

/* Runs this with %i the lane, %d the result; lanes' results follow each other. */
static uint32_t *run(struct machine **ret_machine, const char *body)
{
    static char text[4096];
    snprintf(text, sizeof(text),
             ".version 8.6\n.target sm_90\n.address_size 64\n"
             ".entry k(.param .u64 out, .param .u64 in)\n{\n"
             ".reg .b64 %%p, %%from, %%at; .reg .b32 %%i, %%d, %%r<4>; .reg .pred %%q<4>;\n"
             ".shared .align 16 .b8 box[512];\n"
             "ld.param.u64 %%p, [out];\nld.param.u64 %%from, [in];\nmov.u32 %%i, %%laneid;\n"
             "mul.wide.u32 %%at, %%i, 16;\nadd.u64 %%from, %%from, %%at;\nshr.u64 %%at, %%at, 2;\n"
             "add.u64 %%p, %%p, %%at;\n%s\nst.global.b32 [%%p], %%d;\nret;\n}\n",
             body);
    struct machine *machine = *ret_machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, 128), *in = machine_memory(machine, 512);
    for (unsigned i = 0; i < 128; i++)
        in[i] = i + 1;
    if (machine_launch(machine, "k", 1, 32, 0, (void *[]){&out, &in}) != CUDA_SUCCESS)
        fail_msg("%s", machine->message);
    return out;
}

/* p of d|p is whether d has a bit, and or or q. */
static void check_lop3(const char *operator, bool is_or, bool negated)
{
    char body[512];
    snprintf(body, sizeof(body),
             "and.b32 %%r0, %%i, 4;\nsetp.ne.u32 %%q0, %%r0, 0;\nmov.b32 %%r1, -1;\n"
             "lop3.%s.b32 %%r2|%%q1, %%i, %%r1, 3, 0x80, %s%%q0;\n"
             "lop3.%s.b32 _|%%q2, %%i, %%r1, 3, 0x80, %s%%q0;\n"
             "selp.b32 %%d, 16, 0, %%q1;\nselp.b32 %%r3, 32, 0, %%q2;\nor.b32 %%d, %%d, %%r3;\n"
             "or.b32 %%d, %%d, %%r2;",
             operator, negated ? "!" : "", operator, negated ? "!" : "");
    struct machine *machine;
    uint32_t *out = run(&machine, body);
    for (uint32_t lane = 0; lane < 32; lane++) {
        bool some = (lane & 3) != 0, q = ((lane & 4) != 0) != negated;
        bool p = is_or ? some || q : some && q;
        assert_int_equal(out[lane], (lane & 3) | (p ? 48 : 0));
    }
    machine_destroy(machine);
}

static void test_lop3(void **state)
{
    for (unsigned i = 0; i < 4; i++)
        check_lop3(i & 1 ? "or" : "and", i & 1, i & 2);
}

/* What is not copied is zero: by a number, by a predicate, and with a policy behind either. */
static void check_copy(const char *operands, uint32_t (*expected)(uint32_t lane))
{
    char body[512];
    struct machine *machine;
    snprintf(body, sizeof(body),
             "mov.u32 %%r0, box;\nmad.lo.u32 %%r0, %%i, 16, %%r0;\nand.b32 %%r1, %%i, 1;\n"
             "setp.ne.u32 %%q0, %%r1, 0;\nshl.b32 %%r1, %%r1, 3;\nmov.u64 %%at, 0;\n"
             "cp.async.cg.shared.global%s;\ncp.async.wait_all;\n"
             "ld.shared.b32 %%d, [%%r0+4];\nld.shared.b32 %%r2, [%%r0+12];\n"
             "mad.lo.u32 %%d, %%r2, 1000, %%d;",
             operands);
    uint32_t *out = run(&machine, body);
    for (uint32_t lane = 0; lane < 32; lane++)
        assert_int_equal(out[lane], expected(lane));
    machine_destroy(machine);
}

static uint32_t all(uint32_t lane)
{
    return (4 * lane + 4) * 1000 + 4 * lane + 2;
}

static uint32_t half_in_odd_lanes(uint32_t lane)
{
    return lane % 2 ? 4 * lane + 2 : 0;
}

static uint32_t even_lanes(uint32_t lane)
{
    return lane % 2 ? 0 : all(lane);
}

static uint32_t odd_lanes(uint32_t lane)
{
    return lane % 2 ? all(lane) : 0;
}

static void test_copies(void **state)
{
    check_copy(" [%r0], [%from], 16", all);
    check_copy(".L2::cache_hint [%r0], [%from], 16, %at", all);
    check_copy(" [%r0], [%from], 16, %r1", half_in_odd_lanes);
    check_copy(".L2::cache_hint [%r0], [%from], 16, %r1, %at", half_in_odd_lanes);
    check_copy(" [%r0], [%from], 16, %q0", even_lanes);
    check_copy(" [%r0], [%from], 16, !%q0", odd_lanes);
    check_copy(".L2::cache_hint [%r0], [%from], 16, %q0, %at", even_lanes);
}

/* A special register that is a predicate. */
static void test_explicit_cluster(void **state)
{
    struct machine *machine;
    uint32_t *out = run(&machine, "mov.pred %q0, %is_explicit_cluster;\nselp.b32 %d, 1, 2, %q0;");
    assert_int_equal(out[7], 2);
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_lop3),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_explicit_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
