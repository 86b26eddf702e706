/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores. A vector access is a row of elements, one register each: d, b, c, p.
 */
#include "memory.h"

#include <string.h>

static uint32_t element_register(const struct insn *insn, unsigned element)
{
    const uint32_t registers[4] = {insn->d, insn->b, insn->c, insn->p};
    return registers[element];
}

/* Whether lane l's element is the l-th of an array. */
static bool is_row(const uint64_t *address, unsigned size)
{
    uint64_t differences = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        differences |= address[lane] ^ (address[0] + lane * size);
    return differences == 0;
}

/* volatile: the compiler must neither tear nor repeat an access that another thread can see. */
#define LOAD(name, memory_type, register_type)                                                                        \
    static void load_element_##name(struct warp *warp, uint32_t offset, unsigned displacement, bool row)              \
    {                                                                                                                 \
        register_type *to = reg(warp, offset);                                                                        \
        const uint64_t *address = warp->address;                                                                      \
        if (row) {                                                                                                    \
            const memory_type *from = (const memory_type *)(uintptr_t)address[0];                                     \
            for (unsigned lane = 0; lane < LANES; lane++)                                                             \
                to[lane] = (register_type)from[lane];                                                                 \
            return;                                                                                                   \
        }                                                                                                             \
        EACH_ACTIVE_LANE                                                                                              \
        to[lane] = (register_type) * (const volatile memory_type *)(uintptr_t)(address[lane] + displacement);         \
    }                                                                                                                 \
    void run_load_##name(struct warp *warp, const struct insn *insn)                                                  \
    {                                                                                                                 \
        unsigned width = insn->width;                                                                                 \
        unsigned size = sizeof(memory_type);                                                                          \
        if (!locate(warp, insn, width * size, width * size, SG_READ))                                                 \
            return;                                                                                                   \
        bool row = width == 1 && warp->full && warp->alive == FULL_MASK &&                                            \
                   !(insn->flags & INSN_SYNCHRONISES) && is_row(warp->address, size);                                 \
        for (unsigned i = 0; i < width; i++) {                                                                        \
            if (element_register(insn, i) != NO_OPERAND)                                                              \
                load_element_##name(warp, element_register(insn, i), i * size, row);                                  \
        }                                                                                                             \
        if (insn->flags & INSN_SYNCHRONISES)                                                                          \
            warp_synchronises(warp);                                                                                  \
    }
LOAD(u8, uint8_t, uint32_t)
LOAD(s8, int8_t, int32_t)
LOAD(u16, uint16_t, uint32_t)
LOAD(s16, int16_t, int32_t)
LOAD(b32, uint32_t, uint32_t)
LOAD(b64, uint64_t, uint64_t)
#undef LOAD

#define STORE(name, memory_type, register_type)                                                                       \
    static void store_element_##name(struct warp *warp, uint32_t offset, unsigned displacement, bool row)             \
    {                                                                                                                 \
        const register_type *from = reg(warp, offset);                                                                \
        const uint64_t *address = warp->address;                                                                      \
        if (row) {                                                                                                    \
            memory_type *to = (memory_type *)(uintptr_t)address[0];                                                   \
            for (unsigned lane = 0; lane < LANES; lane++)                                                             \
                to[lane] = (memory_type)from[lane];                                                                   \
            return;                                                                                                   \
        }                                                                                                             \
        EACH_ACTIVE_LANE                                                                                              \
        *(volatile memory_type *)(uintptr_t)(address[lane] + displacement) = (memory_type)from[lane];                 \
    }                                                                                                                 \
    void run_store_##name(struct warp *warp, const struct insn *insn)                                                 \
    {                                                                                                                 \
        unsigned width = insn->width;                                                                                 \
        unsigned size = sizeof(memory_type);                                                                          \
        if (!locate(warp, insn, width * size, width * size, SG_WRITE))                                                \
            return;                                                                                                   \
        bool row = width == 1 && warp->full && warp->alive == FULL_MASK &&                                            \
                   !(insn->flags & INSN_SYNCHRONISES) && is_row(warp->address, size);                                 \
        if (insn->flags & INSN_FENCE_BEFORE)                                                                          \
            __atomic_thread_fence(__ATOMIC_SEQ_CST);                                                                  \
        for (unsigned i = 0; i < width; i++)                                                                          \
            store_element_##name(warp, element_register(insn, i), i * size, row);                                     \
    }
STORE(b8, uint8_t, uint32_t)
STORE(b16, uint16_t, uint32_t)
STORE(b32, uint32_t, uint32_t)
STORE(b64, uint64_t, uint64_t)
#undef STORE

/* A kernel parameter at a constant offset, checked when decoded: the same for every lane. */
#define LOAD_PARAM(name, memory_type, register_type)                                                                  \
    void run_load_param_##name(struct warp *warp, const struct insn *insn)                                            \
    {                                                                                                                 \
        const unsigned char *from = warp->block->grid->params + insn->imm;                                            \
        for (unsigned i = 0; i < insn->width; i++) {                                                                  \
            uint32_t offset = element_register(insn, i);                                                              \
            if (offset == NO_OPERAND)                                                                                 \
                continue;                                                                                             \
            memory_type value;                                                                                        \
            memcpy(&value, from + i * sizeof(value), sizeof(value));                                                  \
            register_type *to = reg(warp, offset);                                                                    \
            const uint32_t *on = warp->lane_on;                                                                       \
            for (unsigned lane = 0; lane < LANES; lane++)                                                             \
                to[lane] = warp->full || on[lane] ? (register_type)value : to[lane];                                  \
        }                                                                                                             \
    }
LOAD_PARAM(u8, uint8_t, uint32_t)
LOAD_PARAM(s8, int8_t, int32_t)
LOAD_PARAM(u16, uint16_t, uint32_t)
LOAD_PARAM(s16, int16_t, int32_t)
LOAD_PARAM(b32, uint32_t, uint32_t)
LOAD_PARAM(b64, uint64_t, uint64_t)
#undef LOAD_PARAM

/* A spinning warp reads what others write: let the others run soon. */
void warp_synchronises(struct warp *warp)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    warp->budget -= SYNCHRONISING_COST;
}

/* Copies bytes between two places of each lane's local memory: arguments into the callee's frame, results back. */
void run_copy_local(struct warp *warp, const struct insn *insn)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint32_t from = insn->a, to = insn->d, size = insn->b;
    EACH_ACTIVE_LANE
    {
        unsigned char *memory = (unsigned char *)(uintptr_t)(warp->local + lane * warp->local_stride) + stack[lane];
        uint64_t room = warp->local_stride - stack[lane];
        if (from + (uint64_t)size > room || to + (uint64_t)size > room) {
            warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
            return;
        }
        memcpy(memory + to, memory + from, size);
    }
}

/*
 * The registers of a function that may be entered again, kept in the frame across a call. They are a window of the
 * register file that starts at d: b of 64 bits, c of 32, p predicates. a is where in the frame they go.
 */
static void save_lane(struct warp *warp, const struct insn *insn, unsigned lane, unsigned char *memory)
{
    const uint64_t *wide = reg(warp, insn->d);
    const uint32_t *narrow = (const uint32_t *)(wide + insn->b * LANES);
    const uint32_t *predicates = narrow + insn->c * LANES;
    for (uint32_t i = 0; i < insn->b; i++, memory += 8)
        memcpy(memory, &wide[i * LANES + lane], 8);
    for (uint32_t i = 0; i < insn->c; i++, memory += 4)
        memcpy(memory, &narrow[i * LANES + lane], 4);
    for (uint32_t i = 0; i < insn->p; i++)
        *memory++ = predicates[i] >> lane & 1;
}

static void restore_lane(struct warp *warp, const struct insn *insn, unsigned lane, const unsigned char *memory)
{
    uint64_t *wide = reg(warp, insn->d);
    uint32_t *narrow = (uint32_t *)(wide + insn->b * LANES);
    uint32_t *predicates = narrow + insn->c * LANES;
    for (uint32_t i = 0; i < insn->b; i++, memory += 8)
        memcpy(&wide[i * LANES + lane], memory, 8);
    for (uint32_t i = 0; i < insn->c; i++, memory += 4)
        memcpy(&narrow[i * LANES + lane], memory, 4);
    for (uint32_t i = 0; i < insn->p; i++)
        predicates[i] = (predicates[i] & ~(1u << lane)) | (uint32_t)*memory++ << lane;
}

/* Where lane's saved registers are, or NULL behind a fault. */
static unsigned char *saved_registers(struct warp *warp, const struct insn *insn, unsigned lane)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint64_t at = stack[lane] + (uint64_t)insn->a;
    if (at + insn->b * 8ull + insn->c * 4ull + insn->p > warp->local_stride) {
        warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
        return NULL;
    }
    return (unsigned char *)(uintptr_t)(warp->local + lane * warp->local_stride + at);
}

void run_save_registers(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        unsigned char *memory = saved_registers(warp, insn, lane);
        if (!memory)
            return;
        save_lane(warp, insn, lane, memory);
    }
}

void run_restore_registers(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        const unsigned char *memory = saved_registers(warp, insn, lane);
        if (!memory)
            return;
        restore_lane(warp, insn, lane, memory);
    }
}

/* cp.async: to a of imm from what the nop behind carries; b says how many of the bytes are copied, the rest is zero. */
void run_copy_async(struct warp *warp, const struct insn *insn)
{
    unsigned size = insn->width;
    uint64_t from[LANES];
    const uint32_t *valid = reg(warp, insn->b);
    if (!locate(warp, insn + 1, size, size, SG_READ))
        return;
    memcpy(from, warp->address, sizeof(from));
    if (!locate(warp, insn, size, size, SG_WRITE))
        return;
    EACH_ACTIVE_LANE
    {
        unsigned char bytes[16] = {0};
        memcpy(bytes, (const void *)(uintptr_t)from[lane], valid[lane] < size ? valid[lane] : size);
        memcpy((void *)(uintptr_t)warp->address[lane], bytes, size);
    }
}
