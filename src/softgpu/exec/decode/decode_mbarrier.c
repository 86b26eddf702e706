/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_mbarrier.h. */
#include "decode_mbarrier.h"

#include "decode_access.h"
#include "decode_memory.h"
#include "mbarrier.h"
#include "operand.h"

/* Orders and scopes mean nothing here: one host thread runs the block. */
static bool is_known(const struct tokens *tokens, unsigned i)
{
    static const char *const words[] = {"acquire", "release", "relaxed", "cta", "cluster", "b64"};
    enum ptx_space space;
    for (unsigned j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
        if (token_is(tokens, i, words[j]))
            return true;
    }
    return token_space(tokens, i, &space) && space == PTX_SHARED;
}

/* Whether all words from `first` on are known; says which space they name. */
static bool take_rest(struct builder *builder, const struct tokens *tokens, unsigned first,
                      enum ptx_space *ret_space)
{
    enum ptx_space space = PTX_NO_SPACE;
    for (unsigned i = first; i < tokens->count; i++) {
        if (!is_known(tokens, i)) {
            decode_unsupported(builder);
            return false;
        }
        token_space(tokens, i, &space);
    }
    *ret_space = space;
    return true;
}

/* An insn on the barrier at this operand. */
static struct insn *emit_at(struct builder *builder, handler_fn run, unsigned address,
                            enum ptx_space space, uint32_t d, uint32_t b)
{
    struct insn where = {0};
    decode_address(builder, operand_at(builder, address), space, &where);
    struct insn *insn = builder_emit(builder, run);
    insn->a = where.a;
    insn->imm = where.imm;
    insn->space = where.space;
    insn->flags = where.flags;
    insn->d = d;
    insn->b = b;
    return insn;
}

/* mbarrier.{init expect_tx complete_tx} [a], count; mbarrier.inval [a] */
static void decode_plain(struct builder *builder, const struct tokens *tokens, enum mbarrier_op op)
{
    enum ptx_space space;
    if (!take_rest(builder, tokens, 2, &space))
        return;
    uint32_t count = op == MBARRIER_INVALIDATE
                         ? operand_constant(builder, 0, false)
                         : operand_source(builder, operand_at(builder, 1), PTX_U32);
    emit_at(builder, run_mbarrier, 0, space, NO_OPERAND, count)->mode = (uint8_t)op;
}

/* mbarrier.{arrive arrive_drop}{.expect_tx .noComplete} {state _}, [a]{, count} */
static void decode_arrive(struct builder *builder, const struct tokens *tokens)
{
    bool expects = token_is(tokens, 2, "expect_tx");
    unsigned first = expects || token_is(tokens, 2, "noComplete") ? 3 : 2;
    enum ptx_space space;
    if (!take_rest(builder, tokens, first, &space))
        return;
    const struct ptx_operand *to = operand_at(builder, 0);
    bool keeps_state = to->kind != PTX_OPERAND_SINK;
    uint32_t count = operand_count(builder) > 2
                         ? operand_source(builder, operand_at(builder, 2), PTX_U32)
                         : operand_constant(builder, 1, false);
    uint32_t state = keeps_state ? operand_destination(builder, to, PTX_B64) : NO_OPERAND;
    struct insn *insn = emit_at(builder, run_mbarrier, 1, space, state, count);
    insn->mode = expects ? MBARRIER_ARRIVE_EXPECT : MBARRIER_ARRIVE;
    insn->width = token_is(tokens, 1, "arrive_drop") ? MBARRIER_DROPS : 0;
    if (keeps_state)
        operand_finish_destination(builder, to, PTX_B64, state);
}

/* mbarrier.{test_wait try_wait}{.parity} p, [a], {state parity}{, time}: no time is too long. */
static void decode_wait(struct builder *builder, const struct tokens *tokens)
{
    bool by_parity = token_is(tokens, 2, "parity");
    enum ptx_space space;
    if (!take_rest(builder, tokens, by_parity ? 3 : 2, &space))
        return;
    uint32_t wanted =
        operand_source(builder, operand_at(builder, 2), by_parity ? PTX_U32 : PTX_B64);
    uint32_t p = operand_destination_predicate(builder, operand_at(builder, 0));
    emit_at(builder, run_mbarrier_test, 1, space, p, wanted)->mode = by_parity;
}

void emit_completion(struct builder *builder, unsigned address, enum ptx_space space,
                     unsigned bytes)
{
    uint32_t count = operand_constant(builder, bytes, false);
    emit_at(builder, run_mbarrier, address, space, NO_OPERAND, count)->mode = MBARRIER_COMPLETE;
}

static void decode_pending(struct builder *builder)
{
    uint32_t state = operand_source(builder, operand_at(builder, 1), PTX_B64);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_U32);
    struct insn *insn = builder_emit(builder, run_mbarrier_pending);
    insn->a = state;
    insn->d = to;
    operand_finish_destination(builder, operand_at(builder, 0), PTX_U32, to);
}

void decode_mbarrier(struct builder *builder, const struct tokens *tokens)
{
    if (token_is(tokens, 1, "init"))
        decode_plain(builder, tokens, MBARRIER_INIT);
    else if (token_is(tokens, 1, "inval"))
        decode_plain(builder, tokens, MBARRIER_INVALIDATE);
    else if (token_is(tokens, 1, "expect_tx"))
        decode_plain(builder, tokens, MBARRIER_EXPECT);
    else if (token_is(tokens, 1, "complete_tx"))
        decode_plain(builder, tokens, MBARRIER_COMPLETE);
    else if (token_is(tokens, 1, "arrive") || token_is(tokens, 1, "arrive_drop"))
        decode_arrive(builder, tokens);
    else if (token_is(tokens, 1, "test_wait") || token_is(tokens, 1, "try_wait"))
        decode_wait(builder, tokens);
    else if (token_is(tokens, 1, "pending_count"))
        decode_pending(builder);
    else
        decode_unsupported(builder);
}

/*
 * cp.async.mbarrier.arrive{.noinc}: an arrival once the thread's copies have ended, which they
 * have. Without .noinc the phase expects one more arrival for it, so nothing changes.
 */
void decode_copy_arrive(struct builder *builder, const struct tokens *tokens)
{
    bool arrives = token_is(tokens, 4, "noinc");
    enum ptx_space space;
    if (!token_is(tokens, 3, "arrive")) {
        decode_unsupported(builder);
        return;
    }
    if (!take_rest(builder, tokens, arrives ? 5 : 4, &space))
        return;
    uint32_t count = operand_constant(builder, 1, false);
    emit_at(builder, run_mbarrier, 0, space, NO_OPERAND, count)->mode =
        arrives ? MBARRIER_ARRIVE : MBARRIER_CHECK;
}
