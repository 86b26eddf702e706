/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic half of the opcode table as the decoder sees it, and the choice of handlers for
 * the CPU at hand.
 */
#include "alu_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "isa.h"

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

/* In the order of the rows. */
static const struct alu_handlers *handlers_of(unsigned row)
{
    static const struct alu_family *const families[][ISA_COUNT] = {
        ISA_TABLE(&alu_integer), ISA_TABLE(&alu_float),           ISA_TABLE(&alu_half),
        ISA_TABLE(&alu_compare), ISA_TABLE(&alu_convert_integer), ISA_TABLE(&alu_convert_float),
    };
    enum isa isa = isa_best();
    unsigned family = 0;
    for (; row >= families[family][isa]->count; family++)
        row -= families[family][isa]->count;
    return &families[family][isa]->rows[row];
}

handler_fn alu_handler(enum alu_op row)
{
    return handlers_of(row)->run;
}

/* ---- From a handler back to its row ---- */

static int16_t handler_buckets[BUCKETS];
static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;

static uint32_t hash_handler(handler_fn run)
{
    return (uint32_t)(((uintptr_t)run >> 4) * 0x9e3779b97f4a7c15 >> 40) % BUCKETS;
}

static void fill_handler_buckets(void)
{
    memset(handler_buckets, -1, sizeof(handler_buckets));
    for (int row = 0; row < ALU_COUNT; row++) {
        uint32_t at = hash_handler(handlers_of(row)->run);
        while (handler_buckets[at] >= 0)
            at = (at + 1) % BUCKETS;
        handler_buckets[at] = (int16_t)row;
    }
}

team_handler_fn alu_team_handler(handler_fn run)
{
    pthread_once(&handlers_once, fill_handler_buckets);
    for (uint32_t at = hash_handler(run); handler_buckets[at] >= 0; at = (at + 1) % BUCKETS) {
        const struct alu_handlers *found = handlers_of(handler_buckets[at]);
        if (found->run == run)
            return found->in_team;
    }
    return NULL;
}
