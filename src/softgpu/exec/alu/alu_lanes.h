/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic handlers: a loop over the lanes for every row of the opcode table.
 *
 * Each handler has two loops. One is for when every lane counts, and has no tests in it; the other
 * keeps the lanes that are not active. Both are straight enough for the compiler to vectorize; this
 * file is compiled once for each ISA variant.
 */
#pragma once

#include <string.h>

#include "alu_table.h"
#include "fp8.h"
#include "isa.h"
#include "lane_any.h"
#include "nans.h"
#include "rounding.h"
#include "warp_state.h"

/* C_t is the type of the value, S_t the type of a lane's storage. */
typedef uint8_t C_u8;
typedef int8_t C_s8;
typedef uint16_t C_u16, C_b16;
typedef int16_t C_s16;
typedef uint32_t C_u32, C_b32;
typedef int32_t C_s32;
typedef uint64_t C_u64, C_b64;
typedef int64_t C_s64;
typedef float C_f32;
typedef double C_f64;

typedef uint32_t S_u8, S_u16, S_b16, S_u32, S_b32;
typedef int32_t S_s8, S_s16, S_s32;
typedef uint64_t S_u64, S_b64;
typedef int64_t S_s64;
typedef float S_f32;
typedef double S_f64;

#define AT(type, name) \
    S_##type *name##_lanes = __builtin_assume_aligned(warp->regs + insn->name, REGISTER_ALIGN)
#define GET(type, name) const C_##type name = (C_##type)name##_lanes[lane]
/* Registers are either the same or apart, so lanes never depend on each other. */
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned lane = 0; lane < LANES; lane++)

/*
 * all_NAME computes in every lane, and some_NAME keeps those that are not active. The handler of
 * one warp is run_NAME, and that of a team of full warps is team_NAME.
 */
#define INLINE __attribute__((always_inline)) static inline
#define ALL_LANES(name) INLINE void all_##name(struct warp *warp, const struct insn *insn)
#define SOME_LANES(name) static void some_##name(struct warp *warp, const struct insn *insn)

#define TEAM_HANDLER(name)                                                                     \
    static void team_##name(struct warp *const *team, unsigned count, const struct insn *insn) \
    {                                                                                          \
        for (unsigned i = 0; i < count; i++)                                                   \
            all_##name(team[i], insn);                                                         \
    }

#define HANDLERS(name)                                                 \
    TEAM_HANDLER(name)                                                 \
    static void run_##name(struct warp *warp, const struct insn *insn) \
    {                                                                  \
        if (warp->full)                                                \
            team_##name(&warp, 1, insn);                               \
        else                                                           \
            some_##name(warp, insn);                                   \
    }

/* Of what looks at the lanes itself. */
#define HANDLERS_OF_ALL(name)                                          \
    static void run_##name(struct warp *warp, const struct insn *insn) \
    {                                                                  \
        all_##name(warp, insn);                                        \
    }                                                                  \
    TEAM_HANDLER(name)

/* `at` finds the operands' registers, `get` loads a lane's values. */
#ifndef ALU_RARE
#define OP(name, td, at, get, expression)                      \
    ALL_LANES(name)                                            \
    {                                                          \
        AT(td, d);                                             \
        at;                                                    \
        EACH_LANE                                              \
        {                                                      \
            get;                                               \
            d_lanes[lane] = (S_##td)(C_##td)(expression);      \
        }                                                      \
    }                                                          \
    SOME_LANES(name)                                           \
    {                                                          \
        AT(td, d);                                             \
        at;                                                    \
        const uint32_t *on = warp->lane_on;                    \
        EACH_LANE                                              \
        {                                                      \
            get;                                               \
            S_##td result = (S_##td)(C_##td)(expression);      \
            d_lanes[lane] = on[lane] ? result : d_lanes[lane]; \
        }                                                      \
    }                                                          \
    HANDLERS(name)
#else
/*
 * Of rows with long expressions that are seldom run. One loop serves whole warps, teams, and warps
 * of which some lanes are not active (their results are put back). It is compiled once, not thrice.
 */
static inline void run_rare(struct warp *warp, const struct insn *insn, unsigned words,
                            team_handler_fn handler)
{
    uint32_t before[2 * LANES];
    if (warp->full) {
        handler(&warp, 1, insn);
        return;
    }
    uint32_t *d = reg(warp, insn->d);
    memcpy(before, d, words * LANES * sizeof(*d));
    handler(&warp, 1, insn);
    for (unsigned i = 0; i < words * LANES; i++)
        d[i] = warp->lane_on[i / words] ? d[i] : before[i];
}

#define OP(name, td, at, get, expression)                                     \
    ALL_LANES(name)                                                           \
    {                                                                         \
        AT(td, d);                                                            \
        at;                                                                   \
        EACH_LANE                                                             \
        {                                                                     \
            get;                                                              \
            d_lanes[lane] = (S_##td)(C_##td)(expression);                     \
        }                                                                     \
    }                                                                         \
    TEAM_HANDLER(name)                                                        \
    static void run_##name(struct warp *warp, const struct insn *insn)        \
    {                                                                         \
        run_rare(warp, insn, sizeof(S_##td) / sizeof(uint32_t), team_##name); \
    }
#endif

/* The fourth source is in insn->p. */
#define AT_P(type, name) \
    const S_##type *name##_lanes = __builtin_assume_aligned(warp->regs + insn->p, REGISTER_ALIGN)

#define OP1(name, suffix, td, ta, mods, expression) \
    OP(name##_##suffix, td, const AT(ta, a), GET(ta, a), expression)
#define OP2(name, suffix, td, ta, tb, mods, expression) \
    OP(name##_##suffix, td, const AT(ta, a); const AT(tb, b), GET(ta, a); GET(tb, b), expression)
#define OP3(name, suffix, td, ta, tb, tc, mods, expression)                                \
    OP(name##_##suffix, td, const AT(ta, a); const AT(tb, b); const AT(tc, c), GET(ta, a); \
       GET(tb, b); GET(tc, c), expression)
#define OP4(name, suffix, td, ta, tb, tc, te, mods, expression)                \
    OP(name##_##suffix, td, const AT(ta, a); const AT(tb, b); const AT(tc, c); \
       AT_P(te, e), GET(ta, a); GET(tb, b); GET(tc, c); GET(te, e), expression)

/* NaNs are rare, so they are looked for behind the results instead of in the way of each. */
static inline void quieten(float *lanes)
{
    EACH_LANE
    lanes[lane] = quiet(lanes[lane]);
}

#define FLOAT(name, at, get, expression)                       \
    ALL_LANES(name)                                            \
    {                                                          \
        AT(f32, d);                                            \
        at;                                                    \
        EACH_LANE                                              \
        {                                                      \
            get;                                               \
            d_lanes[lane] = (expression);                      \
        }                                                      \
        if (__builtin_expect(any_nan(d_lanes), false))         \
            quieten(d_lanes);                                  \
    }                                                          \
    SOME_LANES(name)                                           \
    {                                                          \
        AT(f32, d);                                            \
        at;                                                    \
        const uint32_t *on = warp->lane_on;                    \
        EACH_LANE                                              \
        {                                                      \
            get;                                               \
            float result = quiet(expression);                  \
            d_lanes[lane] = on[lane] ? result : d_lanes[lane]; \
        }                                                      \
    }                                                          \
    HANDLERS(name)

#define FLOAT1(name, expression) FLOAT(name##_f32, const AT(f32, a), GET(f32, a), expression)
#define FLOAT2(name, expression) \
    FLOAT(name##_f32, const AT(f32, a); const AT(f32, b), GET(f32, a); GET(f32, b), expression)
#define FLOAT3(name, expression)                                                         \
    FLOAT(name##_f32, const AT(f32, a); const AT(f32, b); const AT(f32, c), GET(f32, a); \
          GET(f32, b); GET(f32, c), expression)

enum boolean_operator {
    BOOLEAN_NONE,
    BOOLEAN_AND,
    BOOLEAN_OR,
    BOOLEAN_XOR,
};

static inline uint32_t combine(enum boolean_operator operator, uint32_t result, uint32_t with)
{
    switch (operator) {
    case BOOLEAN_AND:
        return result & with;
    case BOOLEAN_OR:
        return result | with;
    case BOOLEAN_XOR:
        return result ^ with;
    default:
        return result;
    }
}

/* p = comparison op c, and q = !comparison op c. */
static inline void set_predicates(struct warp *warp, const struct insn *insn, uint32_t result)
{
    uint32_t active = warp->active;
    uint32_t with = 0;
    if (insn->mode == BOOLEAN_NONE && insn->p == NO_OPERAND && insn->d != NO_OPERAND) {
        uint32_t *p = pred(warp, insn->d);
        *p = (*p & ~active) | (result & active);
        return;
    }
    if (insn->mode)
        with = *pred(warp, insn->c) ^ ((insn->flags & INSN_NEGATE_C) ? FULL_MASK : 0);
    if (insn->d != NO_OPERAND) {
        uint32_t *p = pred(warp, insn->d);
        *p = (*p & ~active) | (combine(insn->mode, result, with) & active);
    }
    if (insn->p != NO_OPERAND) {
        uint32_t *q = pred(warp, insn->p);
        *q = (*q & ~active) | (combine(insn->mode, ~result, with) & active);
    }
}

#define CMP(name, suffix, t, mods, expression)              \
    ALL_LANES(setp_##name##_##suffix)                       \
    {                                                       \
        const AT(t, a);                                     \
        const AT(t, b);                                     \
        uint32_t flags[LANES] __attribute__((aligned(64))); \
        EACH_LANE                                           \
        {                                                   \
            GET(t, a);                                      \
            GET(t, b);                                      \
            flags[lane] = (expression) ? FULL_MASK : 0;     \
        }                                                   \
        set_predicates(warp, insn, mask_of_flags(flags));   \
    }                                                       \
    HANDLERS_OF_ALL(setp_##name##_##suffix)

#define TEST(name, suffix, t, expression)               \
    ALL_LANES(testp_##name##_##suffix)                  \
    {                                                   \
        const AT(t, a);                                 \
        uint32_t result = 0;                            \
        for (unsigned lane = 0; lane < LANES; lane++) { \
            GET(t, a);                                  \
            result |= (expression) ? 1u << lane : 0;    \
        }                                               \
        set_predicates(warp, insn, result);             \
    }                                                   \
    HANDLERS_OF_ALL(testp_##name##_##suffix)

#define SEL(name, suffix, t)                                                                      \
    ALL_LANES(name##_##suffix)                                                                    \
    {                                                                                             \
        AT(t, d);                                                                                 \
        const AT(t, a);                                                                           \
        const AT(t, b);                                                                           \
        uint32_t chosen = *pred(warp, insn->c) ^ ((insn->flags & INSN_NEGATE_C) ? FULL_MASK : 0); \
        const uint32_t *on = warp->lane_on;                                                       \
        bool full = warp->full;                                                                   \
        EACH_LANE                                                                                 \
        {                                                                                         \
            S_##t result = chosen >> lane & 1 ? a_lanes[lane] : b_lanes[lane];                    \
            d_lanes[lane] = on[lane] || full ? result : d_lanes[lane];                            \
        }                                                                                         \
    }                                                                                             \
    HANDLERS_OF_ALL(name##_##suffix)

/* Twice as wide as a value, so that the carry has a place. */
typedef uint64_t WIDE_u32;
typedef unsigned __int128 WIDE_u64;

/* Of a product's names: with _cc the carry is written, without it is kept. */
#define CARRY_KEEPS_cc(bit) CARRY_writes(bit)
#define CARRY_KEEPS(bit) CARRY_keeps(bit)
#define CARRY_writes(bit) carry |= (uint32_t)((bit)&1) << lane
#define CARRY_keeps(bit) carry |= warp->carry & 1u << lane

#define CARRY_BODY(t, writes, sum)               \
    const C_##t in = warp->carry >> lane & 1;    \
    WIDE_##t wide = (sum);                       \
    (void)in;                                    \
    CARRY_##writes(wide >> (8 * sizeof(C_##t))); \
    d_lanes[lane] = on[lane] || full ? (C_##t)wide : d_lanes[lane];

#define CARRY2(name, suffix, t, writes, sum)                                  \
    ALL_LANES(name##_##suffix)                                                \
    {                                                                         \
        AT(t, d);                                                             \
        const AT(t, a);                                                       \
        const AT(t, b);                                                       \
        const uint32_t *on = warp->lane_on;                                   \
        bool full = warp->full;                                               \
        uint32_t carry = 0;                                                   \
        for (unsigned lane = 0; lane < LANES; lane++) {                       \
            GET(t, a);                                                        \
            GET(t, b);                                                        \
            CARRY_BODY(t, writes, sum)                                        \
        }                                                                     \
        warp->carry = (warp->carry & ~warp->active) | (carry & warp->active); \
    }                                                                         \
    HANDLERS_OF_ALL(name##_##suffix)

#define CARRY3(name, suffix, t, writes, sum)                                  \
    ALL_LANES(name##_##suffix)                                                \
    {                                                                         \
        AT(t, d);                                                             \
        const AT(t, a);                                                       \
        const AT(t, b);                                                       \
        const AT(t, c);                                                       \
        const uint32_t *on = warp->lane_on;                                   \
        bool full = warp->full;                                               \
        uint32_t carry = 0;                                                   \
        for (unsigned lane = 0; lane < LANES; lane++) {                       \
            GET(t, a);                                                        \
            GET(t, b);                                                        \
            GET(t, c);                                                        \
            CARRY_BODY(t, writes, sum)                                        \
        }                                                                     \
        warp->carry = (warp->carry & ~warp->active) | (carry & warp->active); \
    }                                                                         \
    HANDLERS_OF_ALL(name##_##suffix)

/*
 * The handlers of a file's rows: between BEGIN and END stands each row's ALU_HANDLERS.
 */
#define ALU_HANDLERS(name, suffix) {run_##name##_##suffix, team_##name##_##suffix},
#define ALU_FAMILY_BEGIN static const struct alu_handlers family_rows[] = {
#define ALU_FAMILY_END(name)                                     \
    }                                                            \
    ;                                                            \
    const struct alu_family ISA_NAME(alu_##name) = {family_rows, \
                                                    sizeof(family_rows) / sizeof(*family_rows)}
