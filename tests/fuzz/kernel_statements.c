/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that compute: rows of the opcode table, and what is not a row.
 *
 * Only what the PTX ISA defines is written. Divisors are not zero, and floating-point operations
 * name their rounding. NaNs become one NaN, since the ISA leaves their bits open.
 */
#include <stdio.h>
#include <string.h>

#include "alu_table.h"
#include "kernel_rows.h"
#include "kernel_text.h"

static const char *const float_types[] = {"f16x2", "bf16x2", "f16", "bf16", "f32", "f64", "tf32"};

static void canonical_half(struct builder *builder, const char *name, bool is_bfloat)
{
    say(builder, "and.b16 %%t16, %s, 0x7fff;", name);
    say(builder, "setp.gt.u16 %%q, %%t16, %s;", is_bfloat ? "0x7f80" : "0x7c00");
    say(builder, "@%%q mov.b16 %s, 0x7fff;", name);
}

void write_canonical_nan(struct builder *builder, const char *type, const char *name)
{
    bool is_bfloat = type[0] == 'b';
    if (builder->keeps_nans)
        return;
    if (strstr(type, "x2")) {
        say(builder, "mov.b32 {%%t16a, %%t16b}, %s;", name);
        canonical_half(builder, "%t16a", is_bfloat);
        canonical_half(builder, "%t16b", is_bfloat);
        say(builder, "mov.b32 %s, {%%t16a, %%t16b};", name);
    } else if (strstr(type, "f16")) {
        canonical_half(builder, name, is_bfloat);
    } else if (strcmp(type, "f64") == 0) {
        say(builder, "testp.notanumber.f64 %%q, %s;", name);
        say(builder, "@%%q mov.b64 %s, 0x7ff8000000000000;", name);
    } else {
        say(builder, "testp.notanumber.f32 %%q, %s;", name);
        say(builder, "@%%q mov.b32 %s, 0x7fffffff;", name);
    }
}

/* The floating-point type of the result, or NULL. */
static const char *float_result(const struct row *row)
{
    static const char *const not_computed[] = {"mov", "slct", "selp"};
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(row->name, not_computed[i]) == 0)
            return NULL;
    }
    for (unsigned i = 0; i < sizeof(float_types) / sizeof(float_types[0]); i++) {
        if (row->form == ROW_CONVERT ? row_first_type_is(row, float_types[i])
                                     : row_last_type_is(row, float_types[i]))
            return float_types[i];
    }
    return NULL;
}

static bool is_called(const struct row *row, const char *name)
{
    return strncmp(row->name, name, strlen(name)) == 0;
}

/* A divisor that is positive and at least 1, in a register of its own. */
static const char *divisor(struct builder *builder, const char *type)
{
    const char *from = register_for(builder, type), *size = type + 1;
    say(builder, "and.b%s %%t%s, %s, %s;", size, size, from,
        strcmp(size, "16") == 0   ? "0x7fff"
        : strcmp(size, "32") == 0 ? "0x7fffffff"
                                  : "0x7fffffffffffffff");
    say(builder, "or.b%s %%t%s, %%t%s, 1;", size, size, size);
    return text_of("%%t%s", size);
}

static bool takes_literals(const struct row *row)
{
    bool is_half =
        row_last_type_is(row, "f16") || row_last_type_is(row, "bf16") || strstr(row->suffix, "x2");
    return row->form != ROW_CONVERT && row->form != ROW_TEST && !is_half && !is_called(row, "slct");
}

static bool is_integer_division(const struct row *row)
{
    return (strcmp(row->name, "div") == 0 || strcmp(row->name, "rem") == 0) &&
           row->suffix[0] != 'f';
}

/* Position and length of a bit field. ptxas gives -1 where bfe.s32 has a literal position beyond
 * the register and a literal length. The ISA says otherwise, so no position is beyond it. */
static const char *field_operand(struct builder *builder, const struct row *row, unsigned index)
{
    bool is_position = is_called(row, "bfe") && index == 1 && row_last_type_is(row, "s32");
    if (!chance(builder, 3))
        return any_register(builder);
    return text_of("%u", pick(builder, 256) % (is_position ? 32 : 256));
}

static const char *source(struct builder *builder, const struct row *row, unsigned index)
{
    const char *type = row->types[index + 1];
    if (is_called(row, "lop3") && index == 3)
        return text_of("%u", pick(builder, 256));
    if (is_called(row, "fns") && index == 1)
        return text_of("%u", pick(builder, 32));
    if ((is_called(row, "bfe") && index > 0) || (is_called(row, "bfi") && index > 1))
        return field_operand(builder, row, index);
    if (is_integer_division(row) && index == 1)
        return divisor(builder, type);
    if (index == 0 || !takes_literals(row) || !chance(builder, 6))
        return register_for(builder, type);
    bool is_float =
        type[0] != 'u' && (row_last_type_is(row, "f32") || row_last_type_is(row, "f64"));
    return literal(builder, is_float ? row->suffix : type);
}

/* From the first to the last, so that draws come in one order whatever the compiler. */
static void write_sources(struct builder *builder, const struct row *row, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < row->operands && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, ", %s", source(builder, row, i));
}

void write_spelling(struct builder *builder, const struct row *row, unsigned index)
{
    char opcode[96], sources[256];
    row_opcode(row, row_spelling(row, index), opcode, sizeof(opcode));
    write_sources(builder, row, sources, sizeof(sources));
    const char *when = guard(builder), *to = register_for(builder, row->types[0]);
    say(builder, "%s%s %s%s;", when, opcode, to, sources);
    if (float_result(row))
        write_canonical_nan(builder, float_result(row), to);
}

static void write_row(struct builder *builder, enum row_form form)
{
    const struct row *row = row_choose(form, draw(builder));
    write_spelling(builder, row, pick(builder, row_spellings(row)));
}

/* ---- Comparisons and predicates ---- */

static const char *boolean(struct builder *builder)
{
    static const char *const names[] = {".and", ".or", ".xor"};
    return chance(builder, 3) ? PICK(builder, names) : "";
}

static const char *with(struct builder *builder, const char *operator)
{
    if (!*operator)
        return "";
    return text_of(", %s", condition(builder));
}

static bool is_half(const struct row *row)
{
    return strstr(row->suffix, "f16") != NULL;
}

/* The code that ptxas makes of a set with a result of .f32 or sources of 16 bits, and of a testp,
 * is wrong. It changes the result where the guard does not hold. So the guard is that of a move
 * behind it. */
static void write_compare(struct builder *builder)
{
    static const char *const results[] = {"u32", "s32", "f32"};
    char sources[256];
    const struct row *row = row_choose(ROW_COMPARE, draw(builder));
    const char *operator= boolean(builder);
    const char *flush =
        row->modifiers & MOD_FTZ && !row_last_type_is(row, "bf16") && chance(builder, 2) ? ".ftz"
                                                                                         : "";
    write_sources(builder, row, sources, sizeof(sources));
    const char *when = guard(builder), *chained = with(builder, operator);
    if (!is_half(row) && chance(builder, 4)) {
        const char *result = PICK(builder, results), *to = any_register(builder);
        bool is_moved = *when && (result[0] == 'f' || strstr(row->suffix, "16"));
        say(builder, "%sset.%s%s%s.%s.%s %s%s%s;", is_moved ? "" : when, row->name, operator, flush,
            result, row->suffix, is_moved ? "%t32" : to, sources, chained);
        if (is_moved)
            say(builder, "%smov.b32 %s, %%t32;", when, to);
        return;
    }
    unsigned first = pick(builder, PREDICATE_REGISTERS);
    unsigned second = (first + 1 + pick(builder, PREDICATE_REGISTERS - 1)) % PREDICATE_REGISTERS;
    const char *other = !is_half(row) && chance(builder, 3) ? text_of("|%%p%u", second) : "";
    say(builder, "%ssetp.%s%s%s.%s %%p%u%s%s%s;", when, row->name, operator, flush, row->suffix,
        first, other, sources, chained);
}

static void write_compare_halves(struct builder *builder)
{
    static const char *const comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                              "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    const char *comparison = PICK(builder, comparisons), *operator= boolean(builder);
    const char *type = chance(builder, 2) ? "f16x2" : "bf16x2";
    const char *a = any_register(builder), *b = any_register(builder);
    const char *chained = with(builder, operator), *when = guard(builder);
    unsigned first = pick(builder, PREDICATE_REGISTERS - 1);
    say(builder, "%ssetp.%s%s.%s %%p%u|%%p%u, %s, %s%s;", when, comparison, operator, type, first,
        first + 1, a, b, chained);
}

static void write_test(struct builder *builder)
{
    char opcode[96];
    const struct row *row = row_choose(ROW_TEST, draw(builder));
    row_opcode(row, row_spelling(row, 0), opcode, sizeof(opcode));
    const char *from = register_for(builder, row->types[1]);
    const char *when = guard(builder), *to = predicate(builder);
    say(builder, "%s %s, %s;", opcode, *when ? "%q" : to, from);
    if (*when)
        say(builder, "%smov.pred %s, %%q;", when, to);
}

static void write_select(struct builder *builder)
{
    char opcode[96], sources[256];
    const struct row *row = row_choose(ROW_SELECT, draw(builder));
    row_opcode(row, row_spelling(row, 0), opcode, sizeof(opcode));
    write_sources(builder, row, sources, sizeof(sources));
    const char *when = guard(builder), *to = register_for(builder, row->types[0]);
    const char *chooser = predicate(builder);
    say(builder, "%s%s %s%s, %s;", when, opcode, to, sources, chooser);
}

static void write_predicates(struct builder *builder)
{
    static const char *const names[] = {"and", "or", "xor"};
    const char *when = guard(builder), *to = predicate(builder), *a = predicate(builder);
    const char *name = PICK(builder, names);
    if (chance(builder, 4))
        say(builder, "%snot.pred %s, %s;", when, to, a);
    else
        say(builder, "%s%s.pred %s, %s, %s;", when, name, to, a, predicate(builder));
}

/* ---- What is not a row ---- */

static void write_pack(struct builder *builder)
{
    unsigned h = pick(builder, NARROW_REGISTERS - 3), r = pick(builder, REGISTERS - 1);
    unsigned d = pick(builder, WIDE_REGISTERS);
    const char *when = guard(builder);
    switch (pick(builder, 6)) {
    case 0:
        say(builder, "%smov.b32 %%r%u, {%%h%u, %%h%u};", when, r, h + 1, h);
        break;
    case 1:
        say(builder, "%smov.b32 {%%h%u, %%h%u}, %%r%u;", when, h, h + 1, r);
        break;
    case 2:
        say(builder, "%smov.b64 %%d%u, {%%r%u, %%r%u};", when, d, r, r + 1);
        break;
    case 3:
        say(builder, "%smov.b64 {%%r%u, %%r%u}, %%d%u;", when, r + 1, r, d);
        break;
    case 4:
        say(builder, "%smov.b64 %%d%u, {%%h%u, %%h%u, %%h%u, %%h%u};", when, d, h, h + 3, h + 1,
            h + 2);
        break;
    default:
        say(builder, "%smov.b64 {%%h%u, %%h%u, %%h%u, %%h%u}, %%d%u;", when, h, h + 1, h + 2, h + 3,
            d);
    }
}

static void write_video(struct builder *builder)
{
    static const char *const names[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"};
    static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const char *const types[] = {"u32", "s32"};
    char opcode[64];
    unsigned elements = chance(builder, 2) ? 2 : 4;
    const char *to = PICK(builder, types), *from = PICK(builder, types);
    const char *other = PICK(builder, types);
    /* The sum of all elements is given in place of them, and is not saturated. */
    bool sums = chance(builder, 3), saturates = !sums && chance(builder, 2);
    if (chance(builder, 4))
        snprintf(opcode, sizeof(opcode), "vset%u.%s.%s.%s%s", elements, from, other,
                 PICK(builder, comparisons), sums ? ".add" : "");
    else
        snprintf(opcode, sizeof(opcode), "%s%u.%s.%s.%s%s", PICK(builder, names), elements, to,
                 from, other,
                 sums        ? ".add"
                 : saturates ? ".sat"
                             : "");
    const char *d = any_register(builder), *a = any_register(builder), *b = any_register(builder);
    say(builder, "%s %s, %s, %s, %s;", opcode, d, a, b, any_register(builder));
}

/* The carry lives from one instruction to the next: no guard, and nothing between. */
static void write_carries(struct builder *builder)
{
    static const char *const sums[] = {"add.cc", "addc.cc", "addc"};
    static const char *const differences[] = {"sub.cc", "subc.cc", "subc"};
    static const char *const products[] = {"mad.lo.cc", "madc.hi.cc", "madc.lo"};
    unsigned kind = pick(builder, 3);
    const char *const *names = kind == 0 ? sums : kind == 1 ? differences : products;
    const char *type = chance(builder, 2) ? "u32" : "u64";
    for (unsigned i = 0; i < 3; i++) {
        const char *to = register_for(builder, type), *a = register_for(builder, type);
        const char *b = register_for(builder, type);
        const char *c = kind == 2 ? text_of(", %s", register_for(builder, type)) : "";
        say(builder, "%s.%s %s, %s, %s%s;", names[i], type, to, a, b, c);
    }
}

static void write_call(struct builder *builder)
{
    unsigned function = pick(builder, builder->functions);
    const char *a = any_register(builder), *b = wide(builder), *to = any_register(builder);
    const char *wide_to = wide(builder);
    say(builder, "{\n.param .b32 a; .param .b64 b; .param .b32 c; .param .b64 d;");
    say(builder, "st.param.b32 [a], %s;\nst.param.b64 [b], %s;", a, b);
    if (function == 0) {
        say(builder, "call (c), first, (a, b);\nld.param.b32 %s, [c];\n}", to);
    } else {
        say(builder, "call (d), second, (b, a);\nld.param.b64 %s, [d];\n}", wide_to);
    }
}

void write_simple(struct builder *builder)
{
    unsigned kind = pick(builder, 40);
    statement_begin(builder);
    if (kind < 14)
        write_row(builder, ROW_COMPUTE);
    else if (kind < 20)
        write_row(builder, ROW_CONVERT);
    else if (kind < 25)
        write_compare(builder);
    else if (kind < 26)
        write_compare_halves(builder);
    else if (kind < 27)
        write_test(builder);
    else if (kind < 29)
        write_select(builder);
    else if (kind < 31)
        write_predicates(builder);
    else if (kind < 33)
        write_pack(builder);
    else if (kind < 34)
        write_video(builder);
    else if (kind < 35)
        write_carries(builder);
    else if (builder->is_in_function)
        write_row(builder, ROW_COMPUTE);
    else if (kind < 39)
        write_memory(builder);
    else
        write_call(builder);
}
