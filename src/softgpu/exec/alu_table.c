/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic half of the opcode table as the decoder sees it, and the choice of handlers for
 * the CPU at hand.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec_control.h"
#include "exec_memory.h"
#include "opcodes.h"
#include "tex_lanes.h"
#include "tile.h"
#include "wide_access.h"

#define T_u8 PTX_U8
#define T_u16 PTX_U16
#define T_u32 PTX_U32
#define T_u64 PTX_U64
#define T_s8 PTX_S8
#define T_s16 PTX_S16
#define T_s32 PTX_S32
#define T_s64 PTX_S64
#define T_b16 PTX_B16
#define T_b32 PTX_B32
#define T_b64 PTX_B64
#define T_f32 PTX_F32
#define T_f64 PTX_F64

const struct alu_row alu_rows[ALU_COUNT] = {
#define OP1(name, suffix, td, ta, mods, ...) \
    {#name "." #suffix, FORM_LANES, 1, mods, {T_##td, T_##ta}},
#define OP2(name, suffix, td, ta, tb, mods, ...) \
    {#name "." #suffix, FORM_LANES, 2, mods, {T_##td, T_##ta, T_##tb}},
#define OP3(name, suffix, td, ta, tb, tc, mods, ...) \
    {#name "." #suffix, FORM_LANES, 3, mods, {T_##td, T_##ta, T_##tb, T_##tc}},
#define OP4(name, suffix, td, ta, tb, tc, te, mods, ...) \
    {#name "." #suffix, FORM_LANES, 4, mods, {T_##td, T_##ta, T_##tb, T_##tc, T_##te}},
#define FLOAT1(name, ...) {#name ".f32", FORM_LANES, 1, FP, {T_f32, T_f32}},
#define FLOAT2(name, ...) {#name ".f32", FORM_LANES, 2, FP, {T_f32, T_f32, T_f32}},
#define FLOAT3(name, ...) {#name ".f32", FORM_LANES, 3, FP, {T_f32, T_f32, T_f32, T_f32}},
#define CMP(name, suffix, t, mods, ...) \
    {"setp." #name "." #suffix, FORM_COMPARE, 2, mods, {PTX_PRED, T_##t, T_##t}},
#define TEST(name, suffix, t, ...) {"testp." #name "." #suffix, FORM_TEST, 1, 0, {PTX_PRED, T_##t}},
#define SEL(name, suffix, t) {#name "." #suffix, FORM_SELECT, 2, 0, {T_##t, T_##t, T_##t}},
#define CARRY2(name, suffix, t, ...) {#name "." #suffix, FORM_LANES, 2, 0, {T_##t, T_##t, T_##t}},
#define CARRY3(name, suffix, t, ...) \
    {#name "." #suffix, FORM_LANES, 3, 0, {T_##t, T_##t, T_##t, T_##t}},
#include "alu.def"
#include "convert.def"
};

#define BUCKETS 4096

static int16_t buckets[BUCKETS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* '_' and '.' are the same: rows are C identifiers. */
static char plain(char c)
{
    return c == '_' ? '.' : c;
}

static uint32_t hash_name(const char *name, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)plain(name[i])) * 16777619u;
    return (hash ^ hash >> 13) % BUCKETS;
}

static bool same_name(const char *row, const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!row[i] || plain(row[i]) != plain(name[i]))
            return false;
    }
    return row[length] == '\0';
}

static void fill_buckets(void)
{
    _Static_assert(ALU_COUNT < BUCKETS / 2, "the hash table must stay sparse");
    memset(buckets, -1, sizeof(buckets));
    for (int row = 0; row < ALU_COUNT; row++) {
        uint32_t at = hash_name(alu_rows[row].name, strlen(alu_rows[row].name));
        while (buckets[at] >= 0)
            at = (at + 1) % BUCKETS;
        buckets[at] = (int16_t)row;
    }
}

int alu_find(const char *name, size_t length)
{
    pthread_once(&once, fill_buckets);
    for (uint32_t at = hash_name(name, length); buckets[at] >= 0; at = (at + 1) % BUCKETS) {
        if (same_name(alu_rows[buckets[at]].name, name, length))
            return buckets[at];
    }
    return -1;
}

#ifdef LANE_MANY
enum generation {
    GENERATION_BASE,
    GENERATION_V3, /* x86-64-v3: AVX2 and FMA */
    GENERATION_V4, /* x86-64-v4: AVX-512 */
};

static enum generation of_cpu(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return GENERATION_V4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return GENERATION_V3;
    return GENERATION_BASE;
}

static enum generation best;
static pthread_once_t best_once = PTHREAD_ONCE_INIT;

/* Tests want the older ones too, on whatever machine they run. */
static void find_best(void)
{
    static const char *const names[] = {"sse2", "avx2", "avx512"};
    const char *wanted = getenv("FUNNEL_SOFT_VECTORS");
    best = of_cpu();
    for (unsigned i = 0; wanted && i < best; i++) {
        if (strcmp(wanted, names[i]) == 0)
            best = (enum generation)i;
    }
}

static enum generation best_generation(void)
{
    pthread_once(&best_once, find_best);
    return best;
}
#endif

bool wide_moves_are_atomic(void)
{
#ifdef LANE_MANY
    return best_generation() >= GENERATION_V3;
#elif defined(__x86_64__)
    return __builtin_cpu_supports("avx");
#else
    return false;
#endif
}

const handler_fn *alu_handlers(void)
{
#ifdef LANE_MANY
    static const handler_fn *const tables[] = {alu_handlers_base, alu_handlers_v3, alu_handlers_v4};
    return tables[best_generation()];
#else
    return alu_handlers_base;
#endif
}

const struct access_handlers *access_handlers(enum access_kind kind)
{
#ifdef LANE_MANY
    static const struct access_handlers *const tables[] = {access_handlers_base, access_handlers_v3,
                                                           access_handlers_v4};
    return &tables[best_generation()][kind];
#else
    return &access_handlers_base[kind];
#endif
}

static const struct atomic_row *atomic_row(enum ptx_type type)
{
#ifdef LANE_MANY
    static const struct atomic_row *const tables[] = {atomic_rows_base, atomic_rows_v3,
                                                      atomic_rows_v4};
    return &tables[best_generation()][type];
#else
    return &atomic_rows_base[type];
#endif
}

handler_fn atomic_handler(enum atomic_op op, enum ptx_type type)
{
    const struct atomic_row *row = atomic_row(type);
    return row->allowed >> op & 1 ? row->run : NULL;
}

void atomic_reduce(enum atomic_op op, enum ptx_type type, void *to, const void *from, uint32_t size)
{
    const struct atomic_row *row = atomic_row(type);
    unsigned step = ptx_type_size(type);
    for (uint32_t at = 0; at < size; at += step)
        row->reduce((unsigned char *)to + at, op, (const unsigned char *)from + at);
}

const struct tile_handlers *tile_handlers(void)
{
#ifdef LANE_MANY
    static const struct tile_handlers *const tables[] = {&tile_handlers_base, &tile_handlers_v3,
                                                         &tile_handlers_v4};
    return tables[best_generation()];
#else
    return &tile_handlers_base;
#endif
}

tex_sample_lanes_fn tex_sample_lanes(void)
{
#ifdef LANE_MANY
    static const tex_sample_lanes_fn functions[] = {tex_sample_lanes_base, tex_sample_lanes_v3,
                                                    tex_sample_lanes_v4};
    return functions[best_generation()];
#else
    return tex_sample_lanes_base;
#endif
}
