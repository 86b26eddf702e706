/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_alu.h. */
#include "decode_alu.h"

#include <stdio.h>
#include <string.h>

#include "alu_table.h"
#include "control_flow.h"
#include "moves.h"
#include "operand.h"

#define NAME_SIZE 96

/* The part that was taken out of the opcode's name. */
struct modifiers {
    unsigned kinds; /* MOD_ */
    unsigned rounding;
    bool flushes;
    bool saturates;
};

static int modifier_kind(const struct tokens *tokens, unsigned index)
{
    if (token_is(tokens, index, "ftz"))
        return MOD_FTZ;
    if (token_is(tokens, index, "sat"))
        return MOD_SAT;
    if (token_is(tokens, index, "approx"))
        return MOD_APPROX;
    return token_rounding(tokens, index) >= 0 ? MOD_ROUND : 0;
}

static void note_modifier(const struct tokens *tokens, unsigned index, struct modifiers *modifiers)
{
    int kind = modifier_kind(tokens, index);
    modifiers->kinds |= (unsigned)kind;
    modifiers->flushes |= kind == MOD_FTZ;
    modifiers->saturates |= kind == MOD_SAT;
    if (kind == MOD_ROUND)
        modifiers->rounding = (unsigned)token_rounding(tokens, index);
}

static bool row_allows(const struct alu_row *row, const struct modifiers *modifiers)
{
    unsigned allowed = row->modifiers;
    if (allowed & MOD_CLAMPS)
        allowed |= MOD_SAT;
    if ((allowed & MOD_ROUND_EVEN) && modifiers->rounding == 0)
        allowed |= MOD_ROUND;
    return (modifiers->kinds & ~allowed) == 0;
}

static const char *bits_type(const struct tokens *tokens, unsigned index)
{
    switch (ptx_type_size(token_type(tokens, index))) {
    case 2:
        return "b16";
    case 4:
        return "b32";
    case 8:
        return "b64";
    default:
        return NULL;
    }
}

/* The name without the tokens in `left_out`; with as_bits the first type becomes that of its bits.
 */
static int find_without(const struct tokens *tokens, uint32_t left_out, bool as_bits,
                        struct modifiers *ret_modifiers)
{
    char name[NAME_SIZE];
    size_t length = 0;
    struct modifiers modifiers = {0};
    for (unsigned i = 0; i < tokens->count; i++) {
        if (left_out >> i & 1) {
            note_modifier(tokens, i, &modifiers);
            continue;
        }
        const char *text = tokens->text[i];
        size_t size = tokens->length[i];
        const char *bits = as_bits && i > 0 ? bits_type(tokens, i) : NULL;
        if (bits) {
            text = bits;
            size = strlen(bits);
            as_bits = false;
        }
        if (length + size + 2 > sizeof(name))
            return -1;
        length += (size_t)snprintf(name + length, sizeof(name) - length, "%s%.*s", i ? "." : "",
                                   (int)size, text);
    }
    int row = alu_find(name, length);
    if (row < 0 || !row_allows(&alu_rows[row], &modifiers))
        return -1;
    *ret_modifiers = modifiers;
    return row;
}

static uint32_t removable(const struct tokens *tokens)
{
    uint32_t mask = 0;
    for (unsigned i = 1; i < tokens->count; i++)
        mask |= modifier_kind(tokens, i) ? 1u << i : 0;
    return mask;
}

static int find_row(const struct tokens *tokens, struct modifiers *ret_modifiers)
{
    uint32_t mask = removable(tokens);
    for (int as_bits = 0; as_bits < 2; as_bits++) {
        /* Every subset of the removable tokens, the empty one first. */
        for (uint32_t subset = 0;; subset = (subset - mask) & mask) {
            int row = find_without(tokens, subset, as_bits, ret_modifiers);
            if (row >= 0)
                return row;
            if (subset == mask)
                break;
        }
    }
    return -1;
}

void set_handler(struct insn *insn, handler_fn run, unsigned environment)
{
    insn->run = environment ? run_in_fp_environment : run;
    insn->fp_inner = environment ? run : NULL;
    insn->environment = (uint8_t)environment;
}

static void set_row(struct insn *insn, int row, const struct modifiers *modifiers)
{
    set_handler(insn, alu_handler(row), modifiers->rounding | (modifiers->flushes ? FP_FLUSH : 0));
}

/* A further operation on the result, in its own place. */
static void emit_finish(struct builder *builder, enum alu_op op, uint32_t offset)
{
    struct insn *insn = builder_emit(builder, alu_handler(op));
    insn->d = offset;
    insn->a = offset;
}

/* Subnormal halves come and go as such in wider arithmetic, whatever its environment. */
static void flush_halves(struct builder *builder, const struct alu_row *row, uint32_t offset)
{
    const char *type = strrchr(row->name, '.');
    if (strcmp(type, ".f16") == 0)
        emit_finish(builder, ALU_flush_f16, offset);
    else if (strcmp(type, ".f16x2") == 0)
        emit_finish(builder, ALU_flush_f16x2, offset);
}

static void decode_lanes(struct builder *builder, int index, const struct modifiers *modifiers)
{
    const struct alu_row *row = &alu_rows[index];
    uint32_t sources[4] = {NO_OPERAND, NO_OPERAND, NO_OPERAND, NO_OPERAND};
    if (operand_count(builder) != row->operands + 1u) {
        decode_malformed(builder, "the wrong number of operands");
        return;
    }
    for (unsigned i = 0; i < row->operands; i++)
        sources[i] = operand_source(builder, operand_at(builder, i + 1), row->types[i + 1]);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), row->types[0]);
    struct insn *insn = builder_emit(builder, NULL);
    insn->d = to;
    insn->a = sources[0];
    insn->b = sources[1];
    insn->c = sources[2];
    insn->p = sources[3];
    set_row(insn, index, modifiers);
    if (modifiers->saturates && !(row->modifiers & MOD_CLAMPS))
        emit_finish(builder, ALU_saturate_f32, to);
    if (modifiers->flushes)
        flush_halves(builder, row, to);
    operand_finish_destination(builder, operand_at(builder, 0), row->types[0], to);
}

static void decode_select(struct builder *builder, int index)
{
    const struct alu_row *row = &alu_rows[index];
    bool negated;
    uint32_t a = operand_source(builder, operand_at(builder, 1), row->types[1]);
    uint32_t b = operand_source(builder, operand_at(builder, 2), row->types[2]);
    uint32_t chooser = operand_source_predicate(builder, operand_at(builder, 3), &negated);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), row->types[0]);
    struct insn *insn = builder_emit(builder, alu_handler(index));
    insn->d = to;
    insn->a = a;
    insn->b = b;
    insn->c = chooser;
    insn->flags = negated ? INSN_NEGATE_C : 0;
    operand_finish_destination(builder, operand_at(builder, 0), row->types[0], to);
}

static void decode_test(struct builder *builder, int index)
{
    uint32_t a = operand_source(builder, operand_at(builder, 1), alu_rows[index].types[1]);
    uint32_t to = operand_destination_predicate(builder, operand_at(builder, 0));
    struct insn *insn = builder_emit(builder, alu_handler(index));
    insn->d = to;
    insn->p = NO_OPERAND;
    insn->a = a;
}

void decode_alu(struct builder *builder, const struct tokens *tokens)
{
    struct modifiers modifiers;
    int row = find_row(tokens, &modifiers);
    if (row < 0)
        decode_unsupported(builder);
    else if (alu_rows[row].form == FORM_LANES)
        decode_lanes(builder, row, &modifiers);
    else if (alu_rows[row].form == FORM_SELECT)
        decode_select(builder, row);
    else if (alu_rows[row].form == FORM_TEST)
        decode_test(builder, row);
    else
        decode_unsupported(builder);
}

/* min and max; min.s32.relu is min.relu.s32. */
void decode_limit(struct builder *builder, const struct tokens *tokens)
{
    struct tokens moved = *tokens;
    unsigned last = tokens->count - 1;
    if (operand_count(builder) > 3) { /* of three, as sm_100 has it */
        decode_unsupported(builder);
        return;
    }
    if (token_is(tokens, last, "relu")) {
        moved.text[last] = tokens->text[last - 1];
        moved.length[last] = tokens->length[last - 1];
        moved.text[last - 1] = tokens->text[last];
        moved.length[last - 1] = tokens->length[last];
    }
    decode_alu(builder, &moved);
}

/* prmt.b32.mode: the table has the type at the end, as elsewhere. ptxas takes either order. */
void decode_prmt(struct builder *builder, const struct tokens *tokens)
{
    struct tokens moved = *tokens;
    for (unsigned i = 1; i + 1 < tokens->count && token_is(tokens, 1, "b32"); i++) {
        moved.text[i] = tokens->text[i + 1];
        moved.length[i] = tokens->length[i + 1];
        moved.text[i + 1] = tokens->text[1];
        moved.length[i + 1] = tokens->length[1];
    }
    decode_alu(builder, &moved);
}

/* Takes the boolean operator out of the opcode; its number is that of the handlers' enum
 * boolean_operator. */
static unsigned take_boolean(struct tokens *tokens)
{
    static const char *const names[] = {"and", "or", "xor"};
    for (unsigned i = 0; i < 3; i++) {
        int at = token_find(tokens, names[i]);
        if (at < 0)
            continue;
        for (unsigned j = (unsigned)at; j + 1 < tokens->count; j++) {
            tokens->text[j] = tokens->text[j + 1];
            tokens->length[j] = tokens->length[j + 1];
        }
        tokens->count--;
        return i + 1;
    }
    return 0;
}

/* p and q of p|q. */
static void pair(struct builder *builder, const struct ptx_operand *from, uint32_t *ret_p,
                 uint32_t *ret_q)
{
    bool is_pair = from->kind == PTX_OPERAND_PAIR;
    *ret_p = operand_destination_predicate(builder, is_pair ? &from->elements[0] : from);
    *ret_q = is_pair ? operand_destination_predicate(builder, &from->elements[1]) : NO_OPERAND;
}

/* The row of a comparison, its boolean operator taken out; -1 behind a failure. */
static int find_compare(struct builder *builder, struct tokens tokens,
                        struct modifiers *ret_modifiers, unsigned *ret_boolean)
{
    *ret_boolean = take_boolean(&tokens);
    int row = find_row(&tokens, ret_modifiers);
    if (row >= 0 && alu_rows[row].form == FORM_COMPARE)
        return row;
    decode_unsupported(builder);
    return -1;
}

/* Sources that are not given are the instruction's own. */
static void emit_compare(struct builder *builder, const struct tokens *tokens, uint32_t p,
                         uint32_t q, const uint32_t *given)
{
    struct modifiers modifiers;
    unsigned boolean;
    bool negated = false;
    int row = find_compare(builder, *tokens, &modifiers, &boolean);
    if (row < 0)
        return;
    uint32_t a =
        given ? given[0] : operand_source(builder, operand_at(builder, 1), alu_rows[row].types[1]);
    uint32_t b =
        given ? given[1] : operand_source(builder, operand_at(builder, 2), alu_rows[row].types[2]);
    uint32_t with =
        boolean ? operand_source_predicate(builder, operand_at(builder, 3), &negated) : NO_OPERAND;
    struct insn *insn = builder_emit(builder, NULL);
    insn->d = p;
    insn->p = q;
    insn->a = a;
    insn->b = b;
    insn->c = with;
    insn->mode = (uint8_t)boolean;
    insn->flags = negated ? INSN_NEGATE_C : 0;
    set_row(insn, row, &modifiers);
}

static uint32_t unpack_half(struct builder *builder, uint32_t from, uint32_t *ret_high)
{
    uint32_t low = builder_temporary(builder, false);
    *ret_high = builder_temporary(builder, false);
    struct insn *insn = builder_emit(builder, run_unpack_2x16);
    insn->a = from;
    insn->d = low;
    insn->b = *ret_high;
    return low;
}

/*
 * A comparison of two halves at once: one for the lower half's predicate, one for the upper's. Both
 * are written by one insn, since the guard and the predicate that they are combined with may be
 * among them.
 */
static void compare_halves(struct builder *builder, struct tokens tokens, uint32_t p, uint32_t q)
{
    uint32_t low[2], high[2];
    bool is_bf16 = last_type(&tokens) == PTX_BF16X2;
    for (unsigned i = 0; i < 2; i++)
        low[i] = unpack_half(builder, operand_source(builder, operand_at(builder, i + 1), PTX_B32),
                             &high[i]);
    tokens.text[tokens.count - 1] = is_bf16 ? "bf16" : "f16";
    tokens.length[tokens.count - 1] = is_bf16 ? 4 : 3;
    uint32_t of_low = builder_predicate_temporary(builder),
             of_high = builder_predicate_temporary(builder);
    emit_compare(builder, &tokens, of_low, NO_OPERAND, low);
    emit_compare(builder, &tokens, of_high, NO_OPERAND, high);
    struct insn *insn = builder_emit(builder, run_predicate_pair);
    insn->d = p;
    insn->p = q;
    insn->a = of_low;
    insn->b = of_high;
}

static bool is_packed(enum ptx_type type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

void decode_setp(struct builder *builder, const struct tokens *tokens)
{
    uint32_t p, q;
    pair(builder, operand_at(builder, 0), &p, &q);
    if (is_packed(last_type(tokens)))
        compare_halves(builder, *tokens, p, q);
    else
        emit_compare(builder, tokens, p, q, NULL);
}

static void emit_set(struct builder *builder, uint32_t to, uint32_t p, uint32_t value)
{
    struct insn *insn = builder_emit(builder, run_set_b32);
    insn->d = to;
    insn->a = p;
    insn->imm = value;
}

/* The result of set where the comparison holds; 0 for a type that it cannot give. */
static uint32_t value_of_true(enum ptx_type type, bool packed)
{
    switch (type) {
    case PTX_U32:
    case PTX_S32:
        return packed ? 0xffff : FULL_MASK;
    case PTX_U16:
    case PTX_S16:
        return packed ? 0 : 0xffff;
    case PTX_F32:
        return packed ? 0 : 0x3f800000;
    case PTX_F16:
        return packed ? 0 : 0x3c00;
    case PTX_BF16:
        return packed ? 0 : 0x3f80;
    case PTX_F16X2:
        return packed ? 0x3c00 : 0;
    case PTX_BF16X2:
        return packed ? 0x3f80 : 0;
    default:
        return 0;
    }
}

static void set_halves(struct builder *builder, const struct tokens *tokens, uint32_t value)
{
    uint32_t p = builder_predicate_temporary(builder), q = builder_predicate_temporary(builder);
    compare_halves(builder, *tokens, p, q);
    uint32_t low = builder_temporary(builder, false), high = builder_temporary(builder, false);
    emit_set(builder, low, p, value);
    emit_set(builder, high, q, value);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_B32);
    struct insn *insn = builder_emit(builder, run_pack_2x16);
    insn->d = to;
    insn->a = low;
    insn->b = high;
}

/* set.cmp{.bool}{.ftz}.dtype.stype: a comparison whose result is a value. */
void decode_set(struct builder *builder, const struct tokens *tokens)
{
    if (tokens->count < 4) {
        decode_unsupported(builder);
        return;
    }
    struct tokens compare = *tokens;
    enum ptx_type type = token_type(tokens, tokens->count - 2);
    compare.text[compare.count - 2] = compare.text[compare.count - 1];
    compare.length[compare.count - 2] = compare.length[compare.count - 1];
    compare.count--;
    compare.text[0] = "setp";
    compare.length[0] = 4;
    bool packed = is_packed(last_type(tokens));
    uint32_t value = value_of_true(type, packed);
    if (value == 0) {
        decode_unsupported(builder);
    } else if (packed) {
        set_halves(builder, &compare, value);
    } else {
        uint32_t p = builder_predicate_temporary(builder);
        emit_compare(builder, &compare, p, NO_OPERAND, NULL);
        emit_set(builder, operand_destination(builder, operand_at(builder, 0), PTX_B32), p, value);
    }
}
