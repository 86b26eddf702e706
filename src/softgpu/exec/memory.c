/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores. A vector access is a row of elements, one register each: d, b, c, p.
 */
#include "exec_memory.h"

#include <string.h>

#include "quick.h"

static uint32_t element_register(const struct insn *insn, unsigned element)
{
    return element == 0 ? insn->d : element == 1 ? insn->b : element == 2 ? insn->c : insn->p;
}

/* Part of three copies of the handler, so that in each the compiler knows the strides. */
#define KNOWS_WIDTH __attribute__((always_inline)) static inline

/* Memory and registers never overlap. */
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned lane = 0; lane < LANES; lane++)

/* volatile: the compiler must neither tear nor repeat an access that another thread can see. */
#define LOAD(name, memory_type, register_type)                                                     \
    static inline void load_each_##name(struct warp *warp, uint32_t offset, unsigned displacement) \
    {                                                                                              \
        /* Lanes that are not active have the address of one that is. */                           \
        register_type *to = reg(warp, offset);                                                     \
        const uint64_t *address = warp->address;                                                   \
        const uint32_t *on = warp->lane_on;                                                        \
        bool full = warp->full;                                                                    \
        for (unsigned lane = 0; lane < LANES; lane++) {                                            \
            register_type value =                                                                  \
                (register_type) *                                                                  \
                (const volatile memory_type *)(uintptr_t)(address[lane] + displacement);           \
            to[lane] = full || on[lane] ? value : to[lane];                                        \
        }                                                                                          \
    }                                                                                              \
    static inline void load_shape_##name(struct warp *warp, const struct insn *insn,               \
                                         unsigned width, enum quick_shape shape,                   \
                                         const unsigned char *at)                                  \
    {                                                                                              \
        _Pragma("GCC unroll 4") for (unsigned i = 0; i < width; i++)                               \
        {                                                                                          \
            const memory_type *from = (const memory_type *)at + i;                                 \
            register_type *to = reg(warp, element_register(insn, i));                              \
            if (element_register(insn, i) == NO_OPERAND)                                           \
                continue;                                                                          \
            if (shape == QUICK_ROW) {                                                              \
                EACH_LANE                                                                          \
                to[lane] = (register_type)from[lane * width];                                      \
            } else {                                                                               \
                register_type value = (register_type) * (const volatile memory_type *)from;        \
                EACH_LANE                                                                          \
                to[lane] = value;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    KNOWS_WIDTH void load_##name(struct warp *warp, const struct insn *insn, unsigned width)       \
    {                                                                                              \
        const unsigned size = width * sizeof(memory_type);                                         \
        unsigned char *at;                                                                         \
        enum quick_shape shape = quick_locate(warp, insn, size, SG_READ, &at);                     \
        if (shape != QUICK_NONE) {                                                                 \
            load_shape_##name(warp, insn, width, shape, at);                                       \
            return;                                                                                \
        }                                                                                          \
        if (!locate(warp, insn, size, size, SG_READ))                                              \
            return;                                                                                \
        for (unsigned i = 0; i < width; i++) {                                                     \
            if (element_register(insn, i) != NO_OPERAND)                                           \
                load_each_##name(warp, element_register(insn, i), i * sizeof(memory_type));        \
        }                                                                                          \
        if (insn->flags & INSN_SYNCHRONISES)                                                       \
            warp_synchronises(warp);                                                               \
    }                                                                                              \
    static void run_load_##name(struct warp *warp, const struct insn *insn)                        \
    {                                                                                              \
        BY_WIDTH(load_##name, warp, insn)                                                          \
    }

#define BY_WIDTH(function, warp, insn) \
    if (insn->width == 1)              \
        function(warp, insn, 1);       \
    else if (insn->width == 2)         \
        function(warp, insn, 2);       \
    else                               \
        function(warp, insn, 4);

LOAD(u8, uint8_t, uint32_t)
LOAD(s8, int8_t, int32_t)
LOAD(u16, uint16_t, uint32_t)
LOAD(s16, int16_t, int32_t)
LOAD(b32, uint32_t, uint32_t)
LOAD(b64, uint64_t, uint64_t)
#undef LOAD

#define STORE(name, memory_type, register_type)                                               \
    static inline void store_each_##name(struct warp *warp, uint32_t offset,                  \
                                         unsigned displacement)                               \
    {                                                                                         \
        const register_type *from = reg(warp, offset);                                        \
        const uint64_t *address = warp->address;                                              \
        if (warp->active == FULL_MASK) {                                                      \
            for (unsigned lane = 0; lane < LANES; lane++)                                     \
                *(volatile memory_type *)(uintptr_t)(address[lane] + displacement) =          \
                    (memory_type)from[lane];                                                  \
            return;                                                                           \
        }                                                                                     \
        EACH_ACTIVE_LANE                                                                      \
        *(volatile memory_type *)(uintptr_t)(address[lane] + displacement) =                  \
            (memory_type)from[lane];                                                          \
    }                                                                                         \
    static inline void store_shape_##name(struct warp *warp, const struct insn *insn,         \
                                          unsigned width, enum quick_shape shape,             \
                                          unsigned char *at)                                  \
    {                                                                                         \
        _Pragma("GCC unroll 4") for (unsigned i = 0; i < width; i++)                          \
        {                                                                                     \
            memory_type *to = (memory_type *)at + i;                                          \
            const register_type *from = reg(warp, element_register(insn, i));                 \
            if (shape == QUICK_SAME) {                                                        \
                *(volatile memory_type *)to = (memory_type)from[LANES - 1];                   \
                continue;                                                                     \
            }                                                                                 \
            EACH_LANE                                                                         \
            to[lane * width] = (memory_type)from[lane];                                       \
        }                                                                                     \
    }                                                                                         \
    KNOWS_WIDTH void store_##name(struct warp *warp, const struct insn *insn, unsigned width) \
    {                                                                                         \
        const unsigned size = width * sizeof(memory_type);                                    \
        unsigned char *at;                                                                    \
        enum quick_shape shape = quick_locate(warp, insn, size, SG_WRITE, &at);               \
        if (shape != QUICK_NONE) {                                                            \
            store_shape_##name(warp, insn, width, shape, at);                                 \
            return;                                                                           \
        }                                                                                     \
        if (!locate(warp, insn, size, size, SG_WRITE))                                        \
            return;                                                                           \
        if (insn->flags & INSN_FENCE_BEFORE)                                                  \
            __atomic_thread_fence(__ATOMIC_SEQ_CST);                                          \
        for (unsigned i = 0; i < width; i++)                                                  \
            store_each_##name(warp, element_register(insn, i), i * sizeof(memory_type));      \
    }                                                                                         \
    static void run_store_##name(struct warp *warp, const struct insn *insn)                  \
    {                                                                                         \
        BY_WIDTH(store_##name, warp, insn)                                                    \
    }
STORE(b8, uint8_t, uint32_t)
STORE(b16, uint16_t, uint32_t)
STORE(b32, uint32_t, uint32_t)
STORE(b64, uint64_t, uint64_t)
#undef STORE

/* A kernel parameter at a constant offset, checked when decoded: the same for every lane. */
#define LOAD_PARAM(name, memory_type, register_type)                              \
    static void run_load_param_##name(struct warp *warp, const struct insn *insn) \
    {                                                                             \
        const unsigned char *from = warp->block->grid->params + insn->imm;        \
        for (unsigned i = 0; i < insn->width; i++) {                              \
            uint32_t offset = element_register(insn, i);                          \
            if (offset == NO_OPERAND)                                             \
                continue;                                                         \
            memory_type value;                                                    \
            memcpy(&value, from + i * sizeof(value), sizeof(value));              \
            register_type *to = reg(warp, offset);                                \
            const uint32_t *on = warp->lane_on;                                   \
            if (warp->full) {                                                     \
                EACH_LANE                                                         \
                to[lane] = (register_type)value;                                  \
                continue;                                                         \
            }                                                                     \
            EACH_LANE                                                             \
            to[lane] = on[lane] ? (register_type)value : to[lane];                \
        }                                                                         \
    }
LOAD_PARAM(u8, uint8_t, uint32_t)
LOAD_PARAM(s8, int8_t, int32_t)
LOAD_PARAM(u16, uint16_t, uint32_t)
LOAD_PARAM(s16, int16_t, int32_t)
LOAD_PARAM(b32, uint32_t, uint32_t)
LOAD_PARAM(b64, uint64_t, uint64_t)
#undef LOAD_PARAM

const struct access_handlers LANE_NAME(access_handlers)[ACCESS_COUNT] = {
    [ACCESS_U8] = {run_load_u8, run_load_param_u8, run_store_b8},
    [ACCESS_S8] = {run_load_s8, run_load_param_s8, run_store_b8},
    [ACCESS_U16] = {run_load_u16, run_load_param_u16, run_store_b16},
    [ACCESS_S16] = {run_load_s16, run_load_param_s16, run_store_b16},
    [ACCESS_B32] = {run_load_b32, run_load_param_b32, run_store_b32},
    [ACCESS_B64] = {run_load_b64, run_load_param_b64, run_store_b64},
};
