/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_bulk.h. */
#include "decode_bulk.h"

#include "address_space.h"
#include "atomics.h"
#include "bulk.h"
#include "cluster.h"
#include "control_flow.h"
#include "decode_access.h"
#include "decode_memory.h"
#include "decode_tensor.h"
#include "moves.h"
#include "operand.h"

/* ---- Addresses in a cluster ---- */

static uint32_t wide_source(struct builder *builder, const struct ptx_operand *from, bool is_wide)
{
    uint32_t offset = operand_source(builder, from, is_wide ? PTX_U64 : PTX_U32);
    if (is_wide)
        return offset;
    struct insn *insn = builder_emit(builder, run_widen_u32);
    insn->a = offset;
    insn->d = builder_temporary(builder, true);
    return insn->d;
}

static bool is_of_cluster(const struct tokens *tokens)
{
    return token_is(tokens, 1, "shared::cluster");
}

/* mapa{.shared::cluster}.{u32 u64} d, a, block and getctarank{.shared::cluster}.{u32 u64} d, a */
void decode_mapa(struct builder *builder, const struct tokens *tokens)
{
    bool is_wide = is_wide_type(last_type(tokens));
    bool maps = token_is(tokens, 0, "mapa");
    if (tokens->count != (is_of_cluster(tokens) ? 3u : 2u) ||
        (!is_wide && last_type(tokens) != PTX_U32)) {
        decode_unsupported(builder);
        return;
    }
    uint32_t from = wide_source(builder, operand_at(builder, 1), is_wide);
    uint32_t rank = maps ? operand_source(builder, operand_at(builder, 2), PTX_U32) : NO_OPERAND;
    enum ptx_type type = maps && is_wide ? PTX_U64 : PTX_U32;
    uint32_t to = operand_destination(builder, operand_at(builder, 0), type);
    bool narrows = maps && !is_wide;
    struct insn *insn = builder_emit(builder, maps ? run_map_address : run_rank_of_address);
    insn->a = from;
    insn->b = rank;
    insn->mode = !is_of_cluster(tokens);
    insn->d = narrows ? builder_temporary(builder, true) : to;
    if (narrows) {
        uint32_t wide = insn->d;
        insn = builder_emit(builder, run_narrow);
        insn->a = wide;
        insn->d = to;
    }
    operand_finish_destination(builder, operand_at(builder, 0), type, to);
}

/* barrier.cluster.{arrive wait}{.release .relaxed .acquire}{.aligned} */
void decode_cluster_barrier(struct builder *builder, const struct tokens *tokens)
{
    if (token_is(tokens, 2, "arrive"))
        builder_emit(builder, run_cluster_arrive);
    else if (token_is(tokens, 2, "wait"))
        builder_emit(builder, run_cluster_wait);
    else
        decode_unsupported(builder);
}

/* ---- Bulk copies ---- */

struct bulk_words {
    enum ptx_space spaces[2];
    unsigned space_count;
    bool has_barrier;
    bool is_multicast;
    bool has_hint;
    int op; /* of a reduction, or -1 */
};

static bool take_word(const struct tokens *tokens, unsigned i, struct bulk_words *words)
{
    static const char *const names[ATOMIC_OP_COUNT] = {"add", "min", "max", "inc",
                                                       "dec", "and", "or",  "xor"};
    if (words->space_count < 2 && token_space(tokens, i, &words->spaces[words->space_count])) {
        words->space_count++;
        return true;
    }
    for (int op = 0; op < ATOMIC_OP_COUNT; op++) {
        if (names[op] && token_is(tokens, i, names[op])) {
            words->op = op;
            return true;
        }
    }
    words->has_barrier |= token_is(tokens, i, "mbarrier::complete_tx::bytes");
    words->is_multicast |= token_is(tokens, i, "multicast::cluster");
    words->has_hint |= token_is(tokens, i, "L2::cache_hint");
    return token_is(tokens, i, "mbarrier::complete_tx::bytes") ||
           token_is(tokens, i, "multicast::cluster") || token_is(tokens, i, "L2::cache_hint") ||
           token_is(tokens, i, "bulk_group") || token_is(tokens, i, "noftz");
}

static bool take_words(const struct tokens *tokens, unsigned first, unsigned end,
                       struct bulk_words *ret_words)
{
    struct bulk_words words = {.op = -1};
    for (unsigned i = first; i < end; i++) {
        if (!take_word(tokens, i, &words))
            return false;
    }
    *ret_words = words;
    return words.space_count == 2;
}

static void put_address(struct insn *insn, const struct insn *where)
{
    insn->a = where->a;
    insn->imm = where->imm;
    insn->flags = where->flags;
    insn->space = where->space;
}

/* [to], [from], size{, [barrier]}{, mask} */
static void emit_bulk(struct builder *builder, const struct bulk_words *words, uint8_t mode,
                      uint8_t type)
{
    struct insn to = {0}, from = {0}, barrier = {0};
    decode_address(builder, operand_at(builder, 0), words->spaces[0], &to);
    decode_address(builder, operand_at(builder, 1), words->spaces[1], &from);
    uint32_t size = operand_source(builder, operand_at(builder, 2), PTX_U32);
    if (words->has_barrier)
        decode_address(builder, operand_at(builder, 3), PTX_SHARED, &barrier);
    uint32_t mask =
        words->is_multicast ? operand_source(builder, operand_at(builder, 4), PTX_B32) : NO_OPERAND;
    struct insn *insn = builder_emit(builder, run_bulk);
    put_address(insn, &to);
    insn->b = size;
    insn->c = mask;
    insn->p = words->has_barrier ? 0 : NO_OPERAND;
    insn->mode = mode;
    insn->width = type;
    put_address(builder_emit(builder, run_nop), &from);
    put_address(builder_emit(builder, run_nop), &barrier);
}

/* cp.async.bulk... and cp.reduce.async.bulk... */
void decode_bulk(struct builder *builder, const struct tokens *tokens)
{
    struct bulk_words words;
    bool reduces = token_is(tokens, 1, "reduce");
    unsigned first = reduces ? 4 : 3;
    enum ptx_type type = reduces ? last_type(tokens) : PTX_NO_TYPE;
    if (token_find(tokens, "tensor") >= 0) {
        decode_tensor_copy(builder, tokens);
    } else if (token_is(tokens, first, "commit_group") || token_is(tokens, first, "wait_group") ||
               token_is(tokens, first, "prefetch")) {
        builder_emit(builder, run_nop);
    } else if (!take_words(tokens, first, tokens->count - reduces, &words) ||
               (words.op >= 0) != reduces || (words.is_multicast && !words.has_barrier) ||
               (reduces && !atomic_handler((enum atomic_op)words.op, type))) {
        decode_unsupported(builder);
    } else {
        emit_bulk(builder, &words, reduces ? (uint8_t)(BULK_REDUCE + words.op) : BULK_COPY,
                  (uint8_t)type);
    }
}
