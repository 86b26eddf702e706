/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations. Lanes go one after the other. The CPU's own atomics keep other host threads
 * out. Shared memory does not need them, as one host thread runs all of a block.
 */
#include "atomics.h"

#include <string.h>

#include "lane_any.h"
#include "lane_math.h"
#include "ordering.h"
#include "sg_space.h"
#include "translate.h"

#define APPLY_INTEGER(type, unsigned_type)                          \
    static type apply_##type(unsigned op, type old, type x, type y) \
    {                                                               \
        switch (op) {                                               \
        case ATOMIC_ADD:                                            \
            return (type)((unsigned_type)old + (unsigned_type)x);   \
        case ATOMIC_MIN:                                            \
            return x < old ? x : old;                               \
        case ATOMIC_MAX:                                            \
            return x > old ? x : old;                               \
        case ATOMIC_INC:                                            \
            return old >= x ? 0 : old + 1;                          \
        case ATOMIC_DEC:                                            \
            return old == 0 || old > x ? x : old - 1;               \
        case ATOMIC_AND:                                            \
            return old & x;                                         \
        case ATOMIC_OR:                                             \
            return old | x;                                         \
        case ATOMIC_XOR:                                            \
            return old ^ x;                                         \
        case ATOMIC_CAS:                                            \
            return old == x ? y : old;                              \
        default:                                                    \
            return x;                                               \
        }                                                           \
    }
APPLY_INTEGER(uint16_t, uint16_t)
APPLY_INTEGER(uint32_t, uint32_t)
APPLY_INTEGER(int32_t, uint32_t)
APPLY_INTEGER(uint64_t, uint64_t)
APPLY_INTEGER(int64_t, uint64_t)

/* Floating-point atomics work on the bits. */
static uint32_t apply_f32(unsigned op, uint32_t old, uint32_t x, uint32_t y)
{
    float a = bits_float(old), b = bits_float(x);
    return float_bits(op == ATOMIC_ADD   ? quiet(a + b)
                      : op == ATOMIC_MIN ? min_f32(a, b)
                                         : max_f32(a, b));
}

static uint64_t apply_f64(unsigned op, uint64_t old, uint64_t x, uint64_t y)
{
    double a = bits_double(old), b = bits_double(x);
    return double_bits(op == ATOMIC_ADD ? a + b : op == ATOMIC_MIN ? min_f64(a, b) : max_f64(a, b));
}

static uint16_t apply_f16(unsigned op, uint16_t old, uint16_t x, uint16_t y)
{
    float a = from_half(old), b = from_half(x);
    return to_half(op == ATOMIC_ADD ? a + b : op == ATOMIC_MIN ? min_f32(a, b) : max_f32(a, b));
}

static uint16_t apply_bf16(unsigned op, uint16_t old, uint16_t x, uint16_t y)
{
    float a = from_bfloat(old), b = from_bfloat(x);
    return to_bfloat(op == ATOMIC_ADD ? a + b : op == ATOMIC_MIN ? min_f32(a, b) : max_f32(a, b));
}

static uint32_t apply_f16x2(unsigned op, uint32_t old, uint32_t x, uint32_t y)
{
    return pack16(apply_f16(op, (uint16_t)old, (uint16_t)x, 0),
                  apply_f16(op, old >> 16, x >> 16, 0));
}

static uint32_t apply_bf16x2(unsigned op, uint32_t old, uint32_t x, uint32_t y)
{
    return pack16(apply_bf16(op, (uint16_t)old, (uint16_t)x, 0),
                  apply_bf16(op, old >> 16, x >> 16, 0));
}

/* Whether all active lanes are at one place; those that are not active have the address of one. */
static inline bool is_one_place(const struct warp *warp)
{
    uint64_t apart[LANES] __attribute__((aligned(64)));
    for (unsigned lane = 0; lane < LANES; lane++)
        apart[lane] = warp->address[lane] ^ warp->address[0];
    return !any_set64(apart);
}

/*
 * d = [a], [a] = op([a], b, c); d may be absent. register_type is the storage of a lane. Additions
 * are by far the most frequent, so they have a loop of their own, and lanes that add to one place
 * do so together.
 */
#define ATOMIC(name, type, register_type, apply, is_integer)                                   \
    static inline type exchange_##name(type *memory, unsigned op, type x, type y)              \
    {                                                                                          \
        if (is_integer && op == ATOMIC_ADD)                                                    \
            return __atomic_fetch_add(memory, x, __ATOMIC_SEQ_CST);                            \
        type old = __atomic_load_n(memory, __ATOMIC_RELAXED);                                  \
        while (!__atomic_compare_exchange_n(memory, &old, apply(op, old, x, y), false,         \
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))               \
            ;                                                                                  \
        return old;                                                                            \
    }                                                                                          \
    static void reduce_##name(void *to, unsigned op, const void *from)                         \
    {                                                                                          \
        type value;                                                                            \
        memcpy(&value, from, sizeof(value));                                                   \
        exchange_##name(to, op, value, 0);                                                     \
    }                                                                                          \
    static void add_together_##name(struct warp *warp, const struct insn *insn)                \
    {                                                                                          \
        const register_type *b = reg(warp, insn->b);                                           \
        type *memory = (type *)(uintptr_t)warp->address[0];                                    \
        type sum = 0, old;                                                                     \
        EACH_ACTIVE_LANE                                                                       \
        sum = (type)(sum + (type)b[lane]);                                                     \
        old = __atomic_fetch_add(memory, sum, __ATOMIC_SEQ_CST);                               \
        if (insn->d == NO_OPERAND)                                                             \
            return;                                                                            \
        register_type *d = reg(warp, insn->d);                                                 \
        EACH_ACTIVE_LANE                                                                       \
        {                                                                                      \
            type next = (type)(old + (type)b[lane]);                                           \
            d[lane] = (register_type)old;                                                      \
            old = next;                                                                        \
        }                                                                                      \
    }                                                                                          \
    static inline void each_##name(struct warp *warp, const struct insn *insn,                 \
                                   enum translation where, unsigned op)                        \
    {                                                                                          \
        const register_type *b = reg(warp, insn->b);                                           \
        const register_type *c = insn->c == NO_OPERAND ? b : reg(warp, insn->c);               \
        register_type *d = insn->d == NO_OPERAND ? NULL : reg(warp, insn->d);                  \
        EACH_ACTIVE_LANE                                                                       \
        {                                                                                      \
            type *memory = (type *)(uintptr_t)warp->address[lane];                             \
            type old;                                                                          \
            if (where == TRANSLATION_OWN) {                                                    \
                old = *memory;                                                                 \
                *memory = apply(op, old, (type)b[lane], (type)c[lane]);                        \
            } else {                                                                           \
                old = exchange_##name(memory, op, (type)b[lane], (type)c[lane]);               \
            }                                                                                  \
            if (d)                                                                             \
                d[lane] = (register_type)old;                                                  \
        }                                                                                      \
    }                                                                                          \
    static void run_atomic_##name(struct warp *warp, const struct insn *insn)                  \
    {                                                                                          \
        enum translation where =                                                               \
            translate(warp, insn, sizeof(type), sizeof(type), SG_READ | SG_WRITE);             \
        if (where == TRANSLATION_FAULT)                                                        \
            return;                                                                            \
        if (insn->mode != ATOMIC_ADD)                                                          \
            each_##name(warp, insn, where, insn->mode);                                        \
        else if (is_integer && is_one_place(warp))                                             \
            add_together_##name(warp, insn);                                                   \
        else                                                                                   \
            each_##name(warp, insn, where, ATOMIC_ADD);                                        \
        if (where != TRANSLATION_OWN || insn->mode == ATOMIC_CAS || insn->mode == ATOMIC_EXCH) \
            warp->budget -= insn->d != NO_OPERAND ? SYNCHRONIZING_COST : 0;                    \
    }
ATOMIC(u16, uint16_t, uint32_t, apply_uint16_t, true)
ATOMIC(u32, uint32_t, uint32_t, apply_uint32_t, true)
ATOMIC(s32, int32_t, int32_t, apply_int32_t, true)
ATOMIC(u64, uint64_t, uint64_t, apply_uint64_t, true)
ATOMIC(s64, int64_t, int64_t, apply_int64_t, true)
ATOMIC(f32, uint32_t, uint32_t, apply_f32, false)
ATOMIC(f64, uint64_t, uint64_t, apply_f64, false)
ATOMIC(f16, uint16_t, uint32_t, apply_f16, false)
ATOMIC(bf16, uint16_t, uint32_t, apply_bf16, false)
ATOMIC(f16x2, uint32_t, uint32_t, apply_f16x2, false)
ATOMIC(bf16x2, uint32_t, uint32_t, apply_bf16x2, false)
#undef ATOMIC

#define BIT(op) (1u << ATOMIC_##op)
#define BITWISE (BIT(AND) | BIT(OR) | BIT(XOR) | BIT(EXCH) | BIT(CAS))
#define MIN_MAX (BIT(MIN) | BIT(MAX))

const struct atomic_row ISA_NAME(atomic_rows)[PTX_TYPE_COUNT] = {
    [PTX_B16] = {run_atomic_u16, reduce_u16, BIT(CAS) | BIT(EXCH)},
    [PTX_B32] = {run_atomic_u32, reduce_u32, BITWISE},
    [PTX_B64] = {run_atomic_u64, reduce_u64, BITWISE},
    [PTX_U32] = {run_atomic_u32, reduce_u32, BIT(ADD) | BIT(INC) | BIT(DEC) | MIN_MAX | BITWISE},
    [PTX_S32] = {run_atomic_s32, reduce_s32, BIT(ADD) | MIN_MAX | BITWISE},
    [PTX_U64] = {run_atomic_u64, reduce_u64, BIT(ADD) | MIN_MAX | BITWISE},
    [PTX_S64] = {run_atomic_s64, reduce_s64, BIT(ADD) | MIN_MAX | BITWISE},
    [PTX_F32] = {run_atomic_f32, reduce_f32, BIT(ADD) | MIN_MAX},
    [PTX_F64] = {run_atomic_f64, reduce_f64, BIT(ADD) | MIN_MAX},
    [PTX_F16] = {run_atomic_f16, reduce_f16, BIT(ADD) | MIN_MAX},
    [PTX_BF16] = {run_atomic_bf16, reduce_bf16, BIT(ADD) | MIN_MAX},
    [PTX_F16X2] = {run_atomic_f16x2, reduce_f16x2, BIT(ADD) | MIN_MAX},
    [PTX_BF16X2] = {run_atomic_bf16x2, reduce_bf16x2, BIT(ADD) | MIN_MAX},
};
