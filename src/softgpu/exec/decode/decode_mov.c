/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_mov.h. */
#include "decode_mov.h"

#include <stdio.h>

#include "alu_table.h"
#include "decode_access.h"
#include "decode_alu.h"
#include "decode_memory.h"
#include "decode_wide.h"
#include "moves.h"
#include "operand.h"

static void emit_predicate(struct builder *builder, enum predicate_mode mode, uint32_t d,
                           uint32_t a, uint32_t b)
{
    struct insn *insn = builder_emit(builder, run_predicate);
    insn->mode = (uint8_t)mode;
    insn->d = d;
    insn->a = a;
    insn->b = b;
}

/* %is_explicit_cluster is a predicate to PTX, a number here. */
static void emit_is_set(struct builder *builder, const struct ptx_operand *special, uint32_t to)
{
    uint32_t number = operand_source(builder, special, PTX_U32),
             none = operand_constant(builder, 0, false);
    struct insn *insn = builder_emit(builder, alu_handler(ALU_setp_ne_u32));
    insn->d = to;
    insn->p = insn->c = NO_OPERAND;
    insn->a = number;
    insn->b = none;
}

static void decode_mov_predicate(struct builder *builder)
{
    if (operand_at(builder, 1)->kind == PTX_OPERAND_SPECIAL) {
        emit_is_set(builder, operand_at(builder, 1),
                    operand_destination_predicate(builder, operand_at(builder, 0)));
        return;
    }
    bool negated;
    uint32_t from = operand_source_predicate(builder, operand_at(builder, 1), &negated);
    uint32_t to = operand_destination_predicate(builder, operand_at(builder, 0));
    if (to != NO_OPERAND)
        emit_predicate(builder, negated ? PREDICATE_NOT : PREDICATE_MOV, to, from, NO_OPERAND);
}

static handler_fn pack_handler(unsigned elements, bool is_wide, bool packs)
{
    if (elements == 2 && !is_wide)
        return packs ? run_pack_2x16 : run_unpack_2x16;
    if (elements == 2)
        return packs ? run_pack_2x32 : run_unpack_2x32;
    if (elements == 4 && is_wide)
        return packs ? run_pack_4x16 : run_unpack_4x16;
    return NULL;
}

static uint32_t element_source(struct builder *builder, const struct ptx_operand *list,
                               unsigned index)
{
    return index < list->count ? operand_source(builder, &list->elements[index], PTX_B32)
                               : NO_OPERAND;
}

static uint32_t element_destination(struct builder *builder, const struct ptx_operand *list,
                                    unsigned index)
{
    if (index >= list->count || list->elements[index].kind == PTX_OPERAND_SINK)
        return NO_OPERAND;
    return operand_destination(builder, &list->elements[index], PTX_B32);
}

/* mov.b64 %rd, {%r1, %r2} */
static void decode_pack(struct builder *builder, enum ptx_type type)
{
    const struct ptx_operand *list = operand_at(builder, 1);
    handler_fn run = pack_handler(list->count, is_wide_type(type), true);
    if (!run) {
        decode_unsupported(builder);
        return;
    }
    uint32_t elements[4];
    for (unsigned i = 0; i < 4; i++)
        elements[i] = element_source(builder, list, i);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), type);
    struct insn *insn = builder_emit(builder, run);
    insn->d = to;
    insn->a = elements[0];
    insn->b = elements[1];
    insn->c = elements[2];
    insn->p = elements[3];
}

/* mov.b64 {%r1, %r2}, %rd */
static void decode_unpack(struct builder *builder, enum ptx_type type)
{
    const struct ptx_operand *list = operand_at(builder, 0);
    handler_fn run = pack_handler(list->count, is_wide_type(type), false);
    if (!run) {
        decode_unsupported(builder);
        return;
    }
    uint32_t from = operand_source(builder, operand_at(builder, 1), type);
    uint32_t elements[4];
    for (unsigned i = 0; i < 4; i++)
        elements[i] = element_destination(builder, list, i);
    struct insn *insn = builder_emit(builder, run);
    insn->a = from;
    insn->d = elements[0];
    insn->b = elements[1];
    insn->c = elements[2];
    insn->p = elements[3];
}

static void emit_copy(struct builder *builder, uint32_t to, uint32_t from, enum ptx_type type)
{
    struct insn *insn =
        builder_emit(builder, alu_handler(is_wide_type(type) ? ALU_mov_b64 : ALU_mov_b32));
    insn->d = to;
    insn->a = from;
}

/* One number of {a, b}, or of a special register that is a vector: %tid. */
static uint32_t element_of(struct builder *builder, const struct ptx_operand *vector,
                           unsigned index, enum ptx_type type)
{
    char name[64];
    struct ptx_operand part = {.kind = PTX_OPERAND_SPECIAL, .name = name};
    if (vector->kind == PTX_OPERAND_LIST && index < vector->count)
        return operand_source(builder, &vector->elements[index], type);
    if (vector->kind != PTX_OPERAND_SPECIAL) {
        decode_malformed(builder, "a vector is needed");
        return 0;
    }
    snprintf(name, sizeof(name), "%.50s.%c", vector->name, "xyzw"[index]);
    return operand_source(builder, &part, type);
}

/* mov.v4.u32 v, %tid: all are read before one is written. */
static void decode_mov_vector(struct builder *builder, unsigned width, enum ptx_type type)
{
    const struct ptx_operand *to = operand_at(builder, 0);
    uint32_t values[4];
    if (to->kind != PTX_OPERAND_LIST || to->count != width) {
        decode_malformed(builder, "a vector is needed as the destination");
        return;
    }
    for (unsigned i = 0; i < width; i++) {
        uint32_t from = element_of(builder, operand_at(builder, 1), i, type);
        values[i] = builder_temporary(builder, is_wide_type(type));
        emit_copy(builder, values[i], from, type);
    }
    for (unsigned i = 0; i < width; i++) {
        if (to->elements[i].kind != PTX_OPERAND_SINK)
            emit_copy(builder, operand_destination(builder, &to->elements[i], type), values[i],
                      type);
    }
}

void decode_mov(struct builder *builder, const struct tokens *tokens)
{
    enum ptx_type type = last_type(tokens);
    if (token_is(tokens, 1, "v2") || token_is(tokens, 1, "v4"))
        decode_mov_vector(builder, token_is(tokens, 1, "v2") ? 2 : 4, type);
    else if (type == PTX_PRED)
        decode_mov_predicate(builder);
    else if (type == PTX_B128)
        decode_mov_b128(builder);
    else if (operand_at(builder, 1)->kind == PTX_OPERAND_LIST)
        decode_pack(builder, type);
    else if (operand_at(builder, 0)->kind == PTX_OPERAND_LIST)
        decode_unpack(builder, type);
    else
        decode_alu(builder, tokens);
}

/* and, or, xor, not */
void decode_logic(struct builder *builder, const struct tokens *tokens)
{
    if (last_type(tokens) != PTX_PRED) {
        decode_alu(builder, tokens);
        return;
    }
    enum predicate_mode mode = token_is(tokens, 0, "and")   ? PREDICATE_AND
                               : token_is(tokens, 0, "or")  ? PREDICATE_OR
                               : token_is(tokens, 0, "xor") ? PREDICATE_XOR
                                                            : PREDICATE_NOT;
    bool negated;
    uint32_t a = operand_source_predicate(builder, operand_at(builder, 1), &negated);
    uint32_t b = mode == PREDICATE_NOT
                     ? NO_OPERAND
                     : operand_source_predicate(builder, operand_at(builder, 2), &negated);
    uint32_t to = operand_destination_predicate(builder, operand_at(builder, 0));
    if (to != NO_OPERAND)
        emit_predicate(builder, mode, to, a, b);
}

/* lop3.BoolOp.b32 d|p, a, b, c, table, q: p says of d whether it has a bit, and or or it holds q */
static void lop3_to_predicate(struct builder *builder, const struct ptx_operand *pair, bool is_or)
{
    bool negated;
    uint32_t sources[4];
    for (unsigned i = 0; i < 4; i++)
        sources[i] = operand_source(builder, operand_at(builder, i + 1), PTX_B32);
    uint32_t q = operand_source_predicate(builder, operand_at(builder, 5), &negated);
    uint32_t d = operand_destination(builder, &pair->elements[0], PTX_B32);
    uint32_t p = operand_destination_predicate(builder, &pair->elements[1]);
    uint32_t none = operand_constant(builder, 0, false);
    struct insn *insn = builder_emit(builder, alu_handler(ALU_lop3_b32));
    insn->d = d;
    insn->a = sources[0];
    insn->b = sources[1];
    insn->c = sources[2];
    insn->p = sources[3];
    operand_finish_destination(builder, &pair->elements[0], PTX_B32, d);
    insn = builder_emit(builder, alu_handler(ALU_setp_ne_b32));
    insn->d = p;
    insn->p = NO_OPERAND;
    insn->a = d;
    insn->b = none;
    insn->c = q;
    insn->mode = is_or ? 2 : 1; /* the handlers' enum boolean_operator */
    insn->flags = negated ? INSN_NEGATE_C : 0;
}

/* lop3{.and .or}.b32 */
void decode_lop3(struct builder *builder, const struct tokens *tokens)
{
    bool is_or = token_is(tokens, 1, "or");
    if (!is_or && !token_is(tokens, 1, "and"))
        decode_alu(builder, tokens);
    else if (operand_at(builder, 0)->kind == PTX_OPERAND_PAIR && last_type(tokens) == PTX_B32)
        lop3_to_predicate(builder, operand_at(builder, 0), is_or);
    else
        decode_unsupported(builder);
}
