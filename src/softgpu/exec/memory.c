/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores. A vector access is a row of elements, one register each: d, b, c, p.
 */
#include "exec_memory.h"

#include <string.h>

static uint32_t element_register(const struct insn *insn, unsigned element)
{
    const uint32_t registers[4] = {insn->d, insn->b, insn->c, insn->p};
    return registers[element];
}

/* volatile: the compiler must neither tear nor repeat an access that another thread can see. */
#define LOAD(name, memory_type, register_type)                                                  \
    static inline void load_element_##name(struct warp *warp, uint32_t offset,                  \
                                           unsigned displacement, bool row)                     \
    {                                                                                           \
        register_type *to = reg(warp, offset);                                                  \
        const uint64_t *address = warp->address;                                                \
        if (row) {                                                                              \
            const memory_type *from = (const memory_type *)(uintptr_t)address[0];               \
            for (unsigned lane = 0; lane < LANES; lane++)                                       \
                to[lane] = (register_type)from[lane];                                           \
            return;                                                                             \
        }                                                                                       \
        /* Lanes that are not active have the address of one that is. */                        \
        const uint32_t *on = warp->lane_on;                                                     \
        bool full = warp->full;                                                                 \
        for (unsigned lane = 0; lane < LANES; lane++) {                                         \
            register_type value =                                                               \
                (register_type) *                                                               \
                (const volatile memory_type *)(uintptr_t)(address[lane] + displacement);        \
            to[lane] = full || on[lane] ? value : to[lane];                                     \
        }                                                                                       \
    }                                                                                           \
    static void run_load_##name(struct warp *warp, const struct insn *insn)                     \
    {                                                                                           \
        unsigned width = insn->width;                                                           \
        unsigned size = sizeof(memory_type);                                                    \
        if (!locate(warp, insn, width * size, width * size, SG_READ))                           \
            return;                                                                             \
        bool row = warp->row && width == 1 && warp->full && !(insn->flags & INSN_SYNCHRONISES); \
        for (unsigned i = 0; i < width; i++) {                                                  \
            if (element_register(insn, i) != NO_OPERAND)                                        \
                load_element_##name(warp, element_register(insn, i), i *size, row);             \
        }                                                                                       \
        if (insn->flags & INSN_SYNCHRONISES)                                                    \
            warp_synchronises(warp);                                                            \
    }
LOAD(u8, uint8_t, uint32_t)
LOAD(s8, int8_t, int32_t)
LOAD(u16, uint16_t, uint32_t)
LOAD(s16, int16_t, int32_t)
LOAD(b32, uint32_t, uint32_t)
LOAD(b64, uint64_t, uint64_t)
#undef LOAD

#define STORE(name, memory_type, register_type)                                                 \
    static inline void store_element_##name(struct warp *warp, uint32_t offset,                 \
                                            unsigned displacement, bool row)                    \
    {                                                                                           \
        const register_type *from = reg(warp, offset);                                          \
        const uint64_t *address = warp->address;                                                \
        if (row) {                                                                              \
            memory_type *to = (memory_type *)(uintptr_t)address[0];                             \
            for (unsigned lane = 0; lane < LANES; lane++)                                       \
                to[lane] = (memory_type)from[lane];                                             \
            return;                                                                             \
        }                                                                                       \
        if (warp->active == FULL_MASK) {                                                        \
            for (unsigned lane = 0; lane < LANES; lane++)                                       \
                *(volatile memory_type *)(uintptr_t)(address[lane] + displacement) =            \
                    (memory_type)from[lane];                                                    \
            return;                                                                             \
        }                                                                                       \
        EACH_ACTIVE_LANE                                                                        \
        *(volatile memory_type *)(uintptr_t)(address[lane] + displacement) =                    \
            (memory_type)from[lane];                                                            \
    }                                                                                           \
    static void run_store_##name(struct warp *warp, const struct insn *insn)                    \
    {                                                                                           \
        unsigned width = insn->width;                                                           \
        unsigned size = sizeof(memory_type);                                                    \
        if (!locate(warp, insn, width * size, width * size, SG_WRITE))                          \
            return;                                                                             \
        bool row = warp->row && width == 1 && warp->full && !(insn->flags & INSN_SYNCHRONISES); \
        if (insn->flags & INSN_FENCE_BEFORE)                                                    \
            __atomic_thread_fence(__ATOMIC_SEQ_CST);                                            \
        for (unsigned i = 0; i < width; i++)                                                    \
            store_element_##name(warp, element_register(insn, i), i *size, row);                \
    }
STORE(b8, uint8_t, uint32_t)
STORE(b16, uint16_t, uint32_t)
STORE(b32, uint32_t, uint32_t)
STORE(b64, uint64_t, uint64_t)
#undef STORE

/* A kernel parameter at a constant offset, checked when decoded: the same for every lane. */
#define LOAD_PARAM(name, memory_type, register_type)                                 \
    static void run_load_param_##name(struct warp *warp, const struct insn *insn)    \
    {                                                                                \
        const unsigned char *from = warp->block->grid->params + insn->imm;           \
        for (unsigned i = 0; i < insn->width; i++) {                                 \
            uint32_t offset = element_register(insn, i);                             \
            if (offset == NO_OPERAND)                                                \
                continue;                                                            \
            memory_type value;                                                       \
            memcpy(&value, from + i * sizeof(value), sizeof(value));                 \
            register_type *to = reg(warp, offset);                                   \
            const uint32_t *on = warp->lane_on;                                      \
            for (unsigned lane = 0; lane < LANES; lane++)                            \
                to[lane] = warp->full || on[lane] ? (register_type)value : to[lane]; \
        }                                                                            \
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
