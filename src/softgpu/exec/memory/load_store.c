/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores. The elements of a vector access are in one register each: d, b, c, p.
 */
#include "load_store.h"

#include <string.h>

#include "fast_path.h"
#include "ordering.h"
#include "translate.h"
#include "vector_access.h"

static uint32_t element_register(const struct insn *insn, unsigned element)
{
    return element == 0 ? insn->d : element == 1 ? insn->b : element == 2 ? insn->c : insn->p;
}

/* Where an element goes to; a sink's is never read. */
static inline void *element_row(struct warp *warp, uint32_t offset, void *sink)
{
    return offset == NO_OPERAND ? sink : reg(warp, offset);
}

/* Memory and registers never overlap. */
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned lane = 0; lane < LANES; lane++)
/* Not unrolled, for then the compiler does not see the vector any more. */
#define EACH_OF_HALF \
    _Pragma("GCC ivdep") _Pragma("GCC unroll 1") for (unsigned i = 0; i < HALF; i++)
#define EACH_OF_GROUP \
    _Pragma("GCC ivdep") _Pragma("GCC unroll 1") for (unsigned i = 0; i < GROUP; i++)

/* volatile: the compiler must neither tear nor repeat an access that another thread can see. */
#define LOAD_SCALAR(name, memory_type, register_type)                                          \
    /* Lanes that are not active have the address of one that is. */                           \
    static inline void load_each_##name(struct warp *warp, register_type *to)                  \
    {                                                                                          \
        const uint64_t *address = warp->address;                                               \
        const uint32_t *on = warp->lane_on;                                                    \
        bool full = warp->full;                                                                \
        for (unsigned lane = 0; lane < LANES; lane++) {                                        \
            register_type value =                                                              \
                (register_type) * (const volatile memory_type *)(uintptr_t)address[lane];      \
            to[lane] = full || on[lane] ? value : to[lane];                                    \
        }                                                                                      \
    }                                                                                          \
    static inline void load_halves_##name(const struct fast_groups *groups, register_type *to) \
    {                                                                                          \
        for (unsigned half = 0; half < 2; half++, to += HALF) {                                \
            const memory_type *from = (const memory_type *)groups->at[2 * half];               \
            if (groups->same[2 * half]) {                                                      \
                register_type value = (register_type)*from;                                    \
                EACH_OF_HALF                                                                   \
                to[i] = value;                                                                 \
            } else {                                                                           \
                EACH_OF_HALF                                                                   \
                to[i] = (register_type)from[i];                                                \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    static inline void load_groups_##name(const struct fast_groups *groups, register_type *to) \
    {                                                                                          \
        if (groups->are_halves) {                                                              \
            load_halves_##name(groups, to);                                                    \
            return;                                                                            \
        }                                                                                      \
        for (unsigned group = 0; group < GROUPS; group++, to += GROUP) {                       \
            const memory_type *from = (const memory_type *)groups->at[group];                  \
            if (groups->same[group]) {                                                         \
                register_type value = (register_type)*from;                                    \
                EACH_OF_GROUP                                                                  \
                to[i] = value;                                                                 \
            } else {                                                                           \
                EACH_OF_GROUP                                                                  \
                to[i] = (register_type)from[i];                                                \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    KNOWS_WIDTH void load_scalar_##name(struct warp *warp, const struct insn *insn)            \
    {                                                                                          \
        const unsigned size = sizeof(memory_type);                                             \
        unsigned char *at;                                                                     \
        struct fast_groups groups;                                                             \
        enum fast_shape shape = fast_translate(warp, insn, size, SG_READ, &at, &groups);       \
        if (shape == FAST_NONE && !translate(warp, insn, size, size, SG_READ))                 \
            return;                                                                            \
        register_type none[LANES];                                                             \
        register_type *to = element_row(warp, insn->d, none);                                  \
        if (shape == FAST_ROW) {                                                               \
            const memory_type *from = (const memory_type *)at;                                 \
            EACH_LANE                                                                          \
            to[lane] = (register_type)from[lane];                                              \
        } else if (shape == FAST_SAME) {                                                       \
            register_type value = (register_type) * (const volatile memory_type *)at;          \
            EACH_LANE                                                                          \
            to[lane] = value;                                                                  \
        } else if (shape == FAST_GROUPS) {                                                     \
            load_groups_##name(&groups, to);                                                   \
        } else {                                                                               \
            load_each_##name(warp, to);                                                        \
        }                                                                                      \
    }

/* All elements are taken in one loop: the compiler then reads each vector once. */
#define LOAD_VECTOR(name, memory_type, register_type)                                          \
    KNOWS_WIDTH void split_##name(struct warp *warp, const struct insn *insn,                  \
                                  const struct vectors *vectors, unsigned width)               \
    {                                                                                          \
        register_type none[LANES];                                                             \
        const memory_type *from = (const memory_type *)vectors->bytes;                         \
        register_type *a = element_row(warp, insn->d, none);                                   \
        register_type *b = element_row(warp, insn->b, none);                                   \
        register_type *c = element_row(warp, insn->c, none);                                   \
        register_type *d = element_row(warp, insn->p, none);                                   \
        EACH_LANE                                                                              \
        {                                                                                      \
            a[lane] = (register_type)from[lane * width];                                       \
            b[lane] = (register_type)from[lane * width + 1];                                   \
            if (width > 2) {                                                                   \
                c[lane] = (register_type)from[lane * width + 2];                               \
                d[lane] = (register_type)from[lane * width + 3];                               \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    KNOWS_WIDTH void split_some_##name(struct warp *warp, const struct insn *insn,             \
                                       const struct vectors *vectors, unsigned width)          \
    {                                                                                          \
        const memory_type *from = (const memory_type *)vectors->bytes;                         \
        const uint32_t *on = warp->lane_on;                                                    \
        for (unsigned i = 0; i < width; i++) {                                                 \
            if (element_register(insn, i) == NO_OPERAND)                                       \
                continue;                                                                      \
            register_type *to = reg(warp, element_register(insn, i));                          \
            EACH_LANE                                                                          \
            to[lane] = on[lane] ? (register_type)from[lane * width + i] : to[lane];            \
        }                                                                                      \
    }                                                                                          \
    KNOWS_WIDTH void load_same_##name(struct warp *warp, const struct insn *insn,              \
                                      const unsigned char *at, unsigned width)                 \
    {                                                                                          \
        memory_type vector[4] __attribute__((aligned(MAX_VECTOR)));                            \
        read_vector((unsigned char *)vector, at, width * sizeof(memory_type), false);          \
        for (unsigned i = 0; i < width; i++) {                                                 \
            if (element_register(insn, i) == NO_OPERAND)                                       \
                continue;                                                                      \
            register_type *to = reg(warp, element_register(insn, i));                          \
            register_type value = (register_type)vector[i];                                    \
            EACH_LANE                                                                          \
            to[lane] = value;                                                                  \
        }                                                                                      \
    }                                                                                          \
    /* Each group's one vector. */                                                             \
    KNOWS_WIDTH void load_groups_same_##name(struct warp *warp, const struct insn *insn,       \
                                             const struct fast_groups *groups, unsigned width) \
    {                                                                                          \
        memory_type vector[GROUPS][4] __attribute__((aligned(MAX_VECTOR)));                    \
        for (unsigned group = 0; group < GROUPS; group++)                                      \
            read_vector((unsigned char *)vector[group], groups->at[group],                     \
                        width * sizeof(memory_type), false);                                   \
        for (unsigned element = 0; element < width; element++) {                               \
            if (element_register(insn, element) == NO_OPERAND)                                 \
                continue;                                                                      \
            register_type *to = reg(warp, element_register(insn, element));                    \
            for (unsigned group = 0; group < GROUPS; group++, to += GROUP) {                   \
                register_type value = (register_type)vector[group][element];                   \
                EACH_OF_GROUP                                                                  \
                to[i] = value;                                                                 \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    KNOWS_WIDTH void load_vector_##name(struct warp *warp, const struct insn *insn,            \
                                        unsigned width)                                        \
    {                                                                                          \
        const unsigned size = width * sizeof(memory_type);                                     \
        struct vectors vectors;                                                                \
        struct fast_groups groups = {0};                                                       \
        unsigned char *at;                                                                     \
        enum fast_shape shape = fast_translate(warp, insn, size, SG_READ, &at, &groups);       \
        if (shape == FAST_SAME) {                                                              \
            load_same_##name(warp, insn, at, width);                                           \
            return;                                                                            \
        }                                                                                      \
        if (shape == FAST_GROUPS && fast_groups_are_same(&groups)) {                           \
            load_groups_same_##name(warp, insn, &groups, width);                               \
            return;                                                                            \
        }                                                                                      \
        if (shape == FAST_NONE && !translate(warp, insn, size, size, SG_READ))                 \
            return;                                                                            \
        if (shape == FAST_ROW)                                                                 \
            read_row(&vectors, at, size);                                                      \
        else if (shape == FAST_GROUPS)                                                         \
            read_groups(&vectors, &groups, size);                                              \
        else                                                                                   \
            read_each(warp, insn, &vectors, size);                                             \
        if (warp->full)                                                                        \
            split_##name(warp, insn, &vectors, width);                                         \
        else                                                                                   \
            split_some_##name(warp, insn, &vectors, width);                                    \
    }

#define LOAD(name, memory_type, register_type)    \
    LOAD_SCALAR(name, memory_type, register_type) \
    LOAD_VECTOR(name, memory_type, register_type) \
    ACCESS_HANDLERS(load, name)

/* Behind the access; no lane waits for a store. */
static inline void load_ends(struct warp *warp, const struct insn *insn)
{
    if (insn->flags & INSN_SYNCHRONIZES)
        warp_synchronizes(warp);
}

static inline void store_ends(struct warp *warp, const struct insn *insn)
{
}

/* Of one element, of one element in several warps, and of 2 or 4 of them. */
#define ACCESS_HANDLERS(access, name)                                              \
    static void run_##access##_##name(struct warp *warp, const struct insn *insn)  \
    {                                                                              \
        access##_scalar_##name(warp, insn);                                        \
        access##_ends(warp, insn);                                                 \
    }                                                                              \
    static void team_##access##_##name(struct warp *const *team, unsigned count,   \
                                       const struct insn *insn)                    \
    {                                                                              \
        for (unsigned i = 0; i < count; i++) {                                     \
            access##_scalar_##name(team[i], insn);                                 \
            access##_ends(team[i], insn);                                          \
        }                                                                          \
    }                                                                              \
    static void run_##access##s_##name(struct warp *warp, const struct insn *insn) \
    {                                                                              \
        if (insn->width == 2)                                                      \
            access##_vector_##name(warp, insn, 2);                                 \
        else                                                                       \
            access##_vector_##name(warp, insn, 4);                                 \
        access##_ends(warp, insn);                                                 \
    }

LOAD(u8, uint8_t, uint32_t)
LOAD(s8, int8_t, int32_t)
LOAD(u16, uint16_t, uint32_t)
LOAD(s16, int16_t, int32_t)
LOAD(b32, uint32_t, uint32_t)
LOAD(b64, uint64_t, uint64_t)
#undef LOAD

/* Threads of the host may read a word meanwhile that is stored with `st.release` or `st.volatile`.
 */
#define STORE_ELEMENT(memory_type, address, value) \
    __atomic_store_n((memory_type *)(uintptr_t)(address), (memory_type)(value), __ATOMIC_RELEASE)

#define STORE_SCALAR(name, memory_type, register_type)                                    \
    static inline void store_each_##name(struct warp *warp, const register_type *from)    \
    {                                                                                     \
        const uint64_t *address = warp->address;                                          \
        if (warp->active == FULL_MASK) {                                                  \
            for (unsigned lane = 0; lane < LANES; lane++)                                 \
                STORE_ELEMENT(memory_type, address[lane], from[lane]);                    \
            return;                                                                       \
        }                                                                                 \
        EACH_ACTIVE_LANE                                                                  \
        STORE_ELEMENT(memory_type, address[lane], from[lane]);                            \
    }                                                                                     \
    /* Where lanes meet, the last one's value stays. */                                   \
    static inline void store_groups_##name(const struct fast_groups *groups,              \
                                           const register_type *from)                     \
    {                                                                                     \
        for (unsigned group = 0; group < GROUPS; group++, from += GROUP) {                \
            memory_type *to = (memory_type *)groups->at[group];                           \
            if (groups->same[group])                                                      \
                *(volatile memory_type *)to = (memory_type)from[GROUP - 1];               \
            else                                                                          \
                for (unsigned i = 0; i < GROUP; i++)                                      \
                    to[i] = (memory_type)from[i];                                         \
        }                                                                                 \
    }                                                                                     \
    KNOWS_WIDTH void store_scalar_##name(struct warp *warp, const struct insn *insn)      \
    {                                                                                     \
        const unsigned size = sizeof(memory_type);                                        \
        unsigned char *at;                                                                \
        struct fast_groups groups;                                                        \
        enum fast_shape shape = fast_translate(warp, insn, size, SG_WRITE, &at, &groups); \
        const register_type *from = reg(warp, insn->d);                                   \
        if (shape == FAST_ROW) {                                                          \
            memory_type *to = (memory_type *)at;                                          \
            EACH_LANE                                                                     \
            to[lane] = (memory_type)from[lane];                                           \
        } else if (shape == FAST_SAME) {                                                  \
            *(volatile memory_type *)at = (memory_type)from[LANES - 1];                   \
        } else if (shape == FAST_GROUPS) {                                                \
            store_groups_##name(&groups, from);                                           \
        } else if (translate(warp, insn, size, size, SG_WRITE)) {                         \
            if (insn->flags & INSN_FENCE_BEFORE)                                          \
                __atomic_thread_fence(__ATOMIC_SEQ_CST);                                  \
            store_each_##name(warp, from);                                                \
        }                                                                                 \
    }

#define STORE_VECTOR(name, memory_type, register_type)                                 \
    KNOWS_WIDTH void join_##name(struct warp *warp, const struct insn *insn,           \
                                 struct vectors *vectors, unsigned width)              \
    {                                                                                  \
        memory_type *to = (memory_type *)vectors->bytes;                               \
        const register_type *a = reg(warp, insn->d);                                   \
        const register_type *b = reg(warp, insn->b);                                   \
        const register_type *c = width > 2 ? reg(warp, insn->c) : NULL;                \
        const register_type *d = width > 2 ? reg(warp, insn->p) : NULL;                \
        EACH_LANE                                                                      \
        {                                                                              \
            to[lane * width] = (memory_type)a[lane];                                   \
            to[lane * width + 1] = (memory_type)b[lane];                               \
            if (width > 2) {                                                           \
                to[lane * width + 2] = (memory_type)c[lane];                           \
                to[lane * width + 3] = (memory_type)d[lane];                           \
            }                                                                          \
        }                                                                              \
    }                                                                                  \
    KNOWS_WIDTH void store_vector_##name(struct warp *warp, const struct insn *insn,   \
                                         unsigned width)                               \
    {                                                                                  \
        const unsigned size = width * sizeof(memory_type);                             \
        struct vectors vectors;                                                        \
        unsigned char *at;                                                             \
        enum fast_shape shape = fast_translate(warp, insn, size, SG_WRITE, &at, NULL); \
        if (shape == FAST_NONE && !translate(warp, insn, size, size, SG_WRITE))        \
            return;                                                                    \
        join_##name(warp, insn, &vectors, width);                                      \
        if (insn->flags & INSN_FENCE_BEFORE)                                           \
            __atomic_thread_fence(__ATOMIC_SEQ_CST);                                   \
        if (shape == FAST_ROW)                                                         \
            write_row(at, &vectors, size);                                             \
        else if (shape == FAST_SAME)                                                   \
            write_vector(at, vectors.bytes + (LANES - 1) * size, size, false);         \
        else                                                                           \
            write_each(warp, insn, &vectors, size);                                    \
    }

#define STORE(name, memory_type, register_type)    \
    STORE_SCALAR(name, memory_type, register_type) \
    STORE_VECTOR(name, memory_type, register_type) \
    ACCESS_HANDLERS(store, name)
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

#define HANDLERS(kind, from, to)                            \
    [ACCESS_##kind] = {{run_load_##from, team_load_##from}, \
                       {run_store_##to, team_store_##to},   \
                       run_loads_##from,                    \
                       run_stores_##to,                     \
                       run_load_param_##from},
const struct access_handlers ISA_NAME(access_handlers)[ACCESS_COUNT] = {
    HANDLERS(U8, u8, b8) HANDLERS(S8, s8, b8) HANDLERS(U16, u16, b16) HANDLERS(S16, s16, b16)
        HANDLERS(B32, b32, b32) HANDLERS(B64, b64, b64)};
