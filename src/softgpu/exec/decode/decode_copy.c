/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_copy.h. cp.async copies at once, so waits for it do nothing. */
#include "decode_copy.h"

#include "async_copy.h"
#include "control_flow.h"
#include "decode_bulk.h"
#include "decode_mbarrier.h"
#include "decode_memory.h"
#include "moves.h"
#include "operand.h"

/* cp.async: how much of its size is copied, the rest being zeros. It is all, a given number, or
 * nothing where a predicate says to ignore the source. */
static uint32_t valid_bytes(struct builder *builder, const struct tokens *tokens, uint64_t size)
{
    bool has_hint = token_find(tokens, "L2::cache_hint") >= 0;
    if (operand_count(builder) <= (has_hint ? 4 : 3))
        return operand_constant(builder, size, false);
    const struct ptx_operand *from = operand_at(builder, 3);
    if (!is_register(builder, from, true))
        return operand_source(builder, from, PTX_U32);
    bool copies;
    uint32_t predicate = operand_source_predicate(builder, from, &copies);
    struct insn *insn = builder_emit(builder, run_predicate);
    insn->mode = copies ? PREDICATE_MOV : PREDICATE_NOT;
    insn->a = predicate;
    insn->b = NO_OPERAND;
    insn->d = predicate = builder_predicate_temporary(builder);
    insn = builder_emit(builder, run_set_b32);
    insn->a = predicate;
    insn->imm = size;
    return insn->d = builder_temporary(builder, false);
}

static void decode_copy(struct builder *builder, const struct tokens *tokens)
{
    struct insn to = {0}, from = {0};
    const struct ptx_operand *size = operand_at(builder, 2);
    bool fits = size->kind == PTX_OPERAND_INTEGER &&
                (size->bits == 4 || size->bits == 8 || size->bits == 16);
    if (!fits) {
        decode_malformed(builder, "the size must be 4, 8 or 16");
        return;
    }
    decode_address(builder, operand_at(builder, 0), PTX_SHARED, &to);
    decode_address(builder, operand_at(builder, 1), PTX_GLOBAL, &from);
    uint32_t valid = valid_bytes(builder, tokens, size->bits);
    struct insn *insn = builder_emit(builder, copy_async_handler());
    insn->a = to.a;
    insn->imm = to.imm;
    insn->flags = to.flags;
    insn->space = to.space;
    insn->width = (uint8_t)size->bits;
    insn->b = valid;
    struct insn *origin = builder_emit(builder, run_nop);
    origin->a = from.a;
    origin->imm = from.imm;
    origin->flags = from.flags;
    origin->space = from.space;
}

void decode_cp(struct builder *builder, const struct tokens *tokens)
{
    if (token_find(tokens, "bulk") >= 0 && token_find(tokens, "async") >= 0)
        decode_bulk(builder, tokens);
    else if (!token_is(tokens, 1, "async"))
        decode_unsupported(builder);
    else if (token_is(tokens, 2, "mbarrier"))
        decode_copy_arrive(builder, tokens);
    else if (token_is(tokens, 2, "ca") || token_is(tokens, 2, "cg"))
        decode_copy(builder, tokens);
    else
        builder_emit(builder, run_nop);
}
