/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the opcode table, and how PTX spells them.
 */
#include "kernel_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alu_table.h"

static struct row rows[] = {
#define OP1(name, suffix, d, a, mods, ...) {#name, #suffix, {#d, #a}, 1, mods, FORM, 0},
#define OP2(name, suffix, d, a, b, mods, ...) {#name, #suffix, {#d, #a, #b}, 2, mods, FORM, 0},
#define OP3(name, suffix, d, a, b, c, mods, ...) \
    {#name, #suffix, {#d, #a, #b, #c}, 3, mods, FORM, 0},
#define OP4(name, suffix, d, a, b, c, e, mods, ...) \
    {#name, #suffix, {#d, #a, #b, #c, #e}, 4, mods, FORM, 0},
#define FLOAT1(name, ...) {#name, "f32", {"f32", "f32"}, 1, FP, FORM, 0},
#define FLOAT2(name, ...) {#name, "f32", {"f32", "f32", "f32"}, 2, FP, FORM, 0},
#define FLOAT3(name, ...) {#name, "f32", {"f32", "f32", "f32", "f32"}, 3, FP, FORM, 0},
#define CMP(name, suffix, type, mods, ...) \
    {#name, #suffix, {"pred", #type, #type}, 2, mods, ROW_COMPARE, 0},
#define TEST(name, suffix, type, ...) {#name, #suffix, {"pred", #type}, 1, 0, ROW_TEST, 0},
#define SEL(name, suffix, type) {#name, #suffix, {#type, #type, #type}, 2, 0, ROW_SELECT, 0},
#define CARRY2(name, suffix, type, ...) {#name, #suffix, {#type, #type, #type}, 2, 0, ROW_CARRY, 0},
#define CARRY3(name, suffix, type, ...) \
    {#name, #suffix, {#type, #type, #type, #type}, 3, 0, ROW_CARRY, 0},
#define FORM ROW_COMPUTE
#include "alu.def"
#undef FORM
#define FORM ROW_CONVERT
#include "convert.def"
#undef FORM
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

uint64_t mix_bits(uint64_t bits)
{
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash * 0x100000001b3;
}

/* .u8 -> 8, and 0 for what is not an integer. */
static int integer_bits(const char *type)
{
    return type[0] == 'u' || type[0] == 's' ? atoi(type + 1) : 0;
}

/* PTX has .sat only where something may be out of range. */
static bool saturates_nothing(const struct row *row)
{
    const char *to = row->suffix, *from = strchr(row->suffix, '_');
    if (strcmp(row->name, "cvt_sat") != 0 || !from)
        return false;
    int larger = integer_bits(to) - integer_bits(from + 1);
    bool is_signed = to[0] == 's', was_signed = from[1] == 's';
    return is_signed == was_signed ? larger >= 0 : is_signed && larger > 0;
}

/* PTX converts bf16 from and to integers of 32 and 64 bits in registers of any size. It converts
 * others only in registers of exactly their size. */
static bool is_small_bfloat(const struct row *row)
{
    const char *from = strchr(row->suffix, '_');
    if (row->form != ROW_CONVERT || !from)
        return false;
    int to_bits = integer_bits(row->suffix), from_bits = integer_bits(from + 1);
    return (row_last_type_is(row, "bf16") && to_bits > 0 && to_bits < 32) ||
           (row_first_type_is(row, "bf16") && from_bits > 0 && from_bits < 32);
}

/* Helpers of the decoder, results that the ISA leaves open, and what PTX does not have. */
static bool is_left_out(const struct row *row)
{
    static const char *const names[] = {
        "saturate", "flush", "div_full", "rsqrt",          "sin",          "cos",
        "lg2",      "ex2",   "tanh",     "rcp_approx_ftz", "rsqrt_approx", "rsqrt_approx_ftz",
    };
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(row->name, names[i]) == 0)
            return true;
    }
    return saturates_nothing(row) || is_small_bfloat(row);
}

static void prepare(void)
{
    static bool done;
    for (unsigned i = 0; i < ROWS && !done; i++)
        rows[i].hash =
            is_left_out(&rows[i])
                ? 0
                : hash_text(hash_text(1469598103934665603u, rows[i].name), rows[i].suffix) | 1;
    done = true;
}

const struct row *row_at(unsigned index)
{
    prepare();
    return index < ROWS && rows[index].hash ? &rows[index] : NULL;
}

unsigned row_count(void)
{
    return ROWS;
}

const struct row *row_choose(enum row_form form, uint64_t draw)
{
    const struct row *best = NULL;
    uint64_t highest = 0;
    prepare();
    for (unsigned i = 0; i < ROWS; i++) {
        uint64_t rank = mix_bits(rows[i].hash ^ draw);
        if (rows[i].form != form || !rows[i].hash || (best && rank <= highest))
            continue;
        best = &rows[i];
        highest = rank;
    }
    return best;
}

bool row_last_type_is(const struct row *row, const char *type)
{
    size_t length = strlen(type), whole = strlen(row->suffix);
    if (length > whole || strcmp(row->suffix + whole - length, type) != 0)
        return false;
    return length == whole || row->suffix[whole - length - 1] == '_';
}

bool row_first_type_is(const struct row *row, const char *type)
{
    size_t length = strlen(type);
    return strncmp(row->suffix, type, length) == 0 &&
           (row->suffix[length] == '\0' || row->suffix[length] == '_');
}

/* ---- Spelling ---- */

static unsigned roundings(const struct row *row)
{
    return row->modifiers & MOD_ROUND ? 4 : 1;
}

static bool may_saturate(const struct row *row)
{
    bool is_division = strcmp(row->name, "div") == 0 || strcmp(row->name, "rcp") == 0 ||
                       strcmp(row->name, "sqrt") == 0;
    return (row->modifiers & (MOD_SAT | MOD_CLAMPS)) != 0 && !is_division &&
           !row_last_type_is(row, "bf16");
}

static bool may_flush(const struct row *row)
{
    bool is_bfloat = strstr(row->suffix, "bf16") != NULL;
    bool converts_no_f32 =
        row->form == ROW_CONVERT && !row_last_type_is(row, "f32") && !row_first_type_is(row, "f32");
    return (row->modifiers & MOD_FTZ) != 0 && !is_bfloat && !converts_no_f32;
}

unsigned row_spellings(const struct row *row)
{
    return roundings(row) * (may_flush(row) ? 2 : 1) * (may_saturate(row) ? 2 : 1);
}

struct spelling row_spelling(const struct row *row, unsigned index)
{
    static const char *const names[] = {".rn", ".rz", ".rm", ".rp"};
    struct spelling spelling = {.rounding = ""};
    if (row->modifiers & (MOD_ROUND | MOD_ROUND_EVEN))
        spelling.rounding = names[index % roundings(row)];
    index /= roundings(row);
    if (may_flush(row)) {
        spelling.flushes = index % 2;
        index /= 2;
    }
    spelling.saturates = may_saturate(row) && index % 2;
    return spelling;
}

/* add_sat of f16 is add{.rn}{.ftz}.sat.f16, cvt_rn_relu is cvt.rn.relu{.ftz}. */
void row_opcode(const struct row *row, struct spelling spelling, char *text, size_t size)
{
    const char *rest = strchrnul(row->name, '_');
    char modifiers[32];
    if (strncmp(row->name, "prmt_", 5) == 0) { /* its mode is behind the type */
        snprintf(text, size, "prmt.b32.%s", rest + 1);
        return;
    }
    snprintf(modifiers, sizeof(modifiers), "%s%s", spelling.rounding,
             spelling.flushes ? ".ftz" : "");
    bool is_convert = row->form == ROW_CONVERT;
    snprintf(text, size, "%s%.*s%s%s%s.%s",
             row->form == ROW_COMPARE ? "setp."
             : row->form == ROW_TEST  ? "testp."
                                      : "",
             (int)(rest - row->name), row->name, is_convert ? rest : modifiers,
             is_convert ? modifiers : rest, spelling.saturates ? ".sat" : "", row->suffix);
    for (char *at = text; *at; at++) {
        if (*at == '_')
            *at = '.';
    }
}
