/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_control.h. */
#include "decode_control.h"

#include <string.h>

#include "alu_table.h"
#include "atomic_op.h"
#include "barrier.h"
#include "collective.h"
#include "control_flow.h"
#include "decode_bulk.h"
#include "operand.h"
#include "stack.h"

static const struct ptx_symbol *label_of(struct builder *builder, const struct ptx_operand *from)
{
    if (from->kind == PTX_OPERAND_SYMBOL && from->symbol->kind == PTX_LABEL)
        return from->symbol;
    decode_malformed(builder, "a label is needed");
    return NULL;
}

void decode_branch(struct builder *builder, const struct tokens *tokens)
{
    const struct ptx_symbol *label = label_of(builder, operand_at(builder, 0));
    const struct ptx_instruction *instruction = builder->instruction;
    if (!label)
        return;
    struct insn *insn = builder_emit(builder, run_branch);
    if (instruction->guard >= 0) {
        insn->run = run_branch_if;
        insn->guard = layout_of(builder, builder->function)->registers[instruction->guard] |
                      (instruction->guard_negated ? 1 : 0);
    }
    builder_add_fixup(builder, label, NULL);
}

void decode_branch_indexed(struct builder *builder, const struct tokens *tokens)
{
    const struct ptx_operand *table = operand_at(builder, 1);
    if (table->kind != PTX_OPERAND_SYMBOL || table->symbol->kind != PTX_BRANCH_TARGETS) {
        decode_malformed(builder, "a list of branch targets is needed");
        return;
    }
    uint32_t index = operand_source(builder, operand_at(builder, 0), PTX_U32);
    struct insn *insn = builder_emit(builder, run_branch_indexed);
    insn->a = index;
    insn->b = table->symbol->targets.count;
    for (uint32_t i = 0; i < table->symbol->targets.count && !builder->failed; i++) {
        const struct ptx_symbol *label = label_of(builder, &table->symbol->targets.labels[i]);
        if (!label)
            return;
        builder_emit(builder, run_nop);
        builder_add_fixup(builder, label, NULL);
    }
}

void emit_return(struct builder *builder)
{
    const struct layout *layout = layout_of(builder, builder->function);
    bool is_entry = builder->function->is_entry;
    if (layout->allocates && !is_entry)
        builder_emit(builder, run_stack_release)->imm = layout->mark;
    builder_emit(builder, is_entry ? run_exit : run_ret);
}

void decode_ret(struct builder *builder, const struct tokens *tokens)
{
    emit_return(builder);
}

/* alloca.type d, size{, alignment}; stacksave.type d; stackrestore.type a. Addresses are local. */
void decode_stack(struct builder *builder, const struct tokens *tokens)
{
    enum ptx_type type = last_type(tokens);
    bool is_alloca = token_is(tokens, 0, "alloca");
    uint64_t align = is_alloca && operand_count(builder) > 2 ? operand_at(builder, 2)->bits : 8;
    if (tokens->count != 2 || !is_wide_type(type)) {
        decode_unsupported(builder);
        return;
    }
    if (align == 0 || align > 4096 || (align & (align - 1))) {
        decode_malformed(builder, "an alignment must be a power of two of at most 4096");
        return;
    }
    if (token_is(tokens, 0, "stackrestore")) {
        uint32_t from = operand_source(builder, operand_at(builder, 0), PTX_U64);
        builder_emit(builder, run_stack_restore)->a = from;
        return;
    }
    uint32_t size =
        is_alloca ? operand_source(builder, operand_at(builder, 1), PTX_U64) : NO_OPERAND;
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_U64);
    struct insn *insn = builder_emit(builder, is_alloca ? run_alloca : run_stack_save);
    insn->a = size;
    insn->d = to;
    insn->b = layout_of(builder, builder->function)->frame;
    insn->imm = align;
}

void decode_exit(struct builder *builder, const struct tokens *tokens)
{
    builder_emit(builder, run_exit);
}

void decode_trap(struct builder *builder, const struct tokens *tokens)
{
    builder_emit(builder, run_trap);
}

void decode_nop(struct builder *builder, const struct tokens *tokens)
{
    builder_emit(builder, run_nop);
}

/* Loads and stores take a policy for the cache, which we do not have. */
void decode_policy(struct builder *builder, const struct tokens *tokens)
{
    uint32_t nothing = operand_constant(builder, 0, true);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_B64);
    struct insn *insn = builder_emit(builder, alu_handler(ALU_mov_b64));
    insn->d = to;
    insn->a = nothing;
}

void decode_fence(struct builder *builder, const struct tokens *tokens)
{
    builder_emit(builder, run_fence);
}

void decode_nanosleep(struct builder *builder, const struct tokens *tokens)
{
    uint32_t nanoseconds = operand_source(builder, operand_at(builder, 0), PTX_U32);
    builder_emit(builder, run_nanosleep)->a = nanoseconds;
}

/* ---- Barriers ---- */

static void emit_warp_barrier(struct builder *builder, const struct ptx_operand *members)
{
    uint32_t mask = operand_source(builder, members, PTX_U32);
    builder_emit(builder, run_warp_barrier)->guard = mask;
}

static int barrier_mode(const struct tokens *tokens)
{
    if (token_find(tokens, "arrive") >= 0)
        return BARRIER_ARRIVE;
    if (token_find(tokens, "red") < 0)
        return token_find(tokens, "sync") >= 0 ? BARRIER_SYNC : -1;
    if (token_find(tokens, "popc") >= 0)
        return BARRIER_POPC;
    return token_find(tokens, "and") >= 0  ? BARRIER_AND
           : token_find(tokens, "or") >= 0 ? BARRIER_OR
                                           : -1;
}

/* bar.sync a{, b}; bar.red.op d, a{, b}, p */
static void emit_barrier(struct builder *builder, enum barrier_mode mode)
{
    unsigned first = mode >= BARRIER_POPC ? 1 : 0;
    unsigned last = operand_count(builder) - first;
    bool negated = false;
    uint32_t number = operand_source(builder, operand_at(builder, first), PTX_U32);
    bool has_count = last > first + 1;
    uint32_t expected =
        has_count ? operand_source(builder, operand_at(builder, first + 1), PTX_U32) : NO_OPERAND;
    uint32_t value =
        first ? operand_source_predicate(builder, operand_at(builder, last), &negated) : NO_OPERAND;
    struct insn *insn = builder_emit(builder, run_barrier);
    insn->mode = (uint8_t)mode;
    insn->a = number;
    insn->b = expected;
    insn->c = value;
    insn->flags = negated ? INSN_NEGATE_C : 0;
    if (!first)
        return;
    uint32_t to = mode == BARRIER_POPC
                      ? operand_destination(builder, operand_at(builder, 0), PTX_U32)
                      : operand_destination_predicate(builder, operand_at(builder, 0));
    struct insn *result = builder_emit(builder, run_barrier_result);
    result->mode = (uint8_t)mode;
    result->a = number;
    result->d = to;
}

void decode_barrier(struct builder *builder, const struct tokens *tokens)
{
    int mode = barrier_mode(tokens);
    if (token_is(tokens, 1, "warp"))
        emit_warp_barrier(builder, operand_at(builder, 0));
    else if (token_is(tokens, 1, "cluster"))
        decode_cluster_barrier(builder, tokens);
    else if (mode < 0)
        decode_unsupported(builder);
    else
        emit_barrier(builder, (enum barrier_mode)mode);
}

/* ---- What lanes do together ---- */

/* shfl.sync.mode.b32 d{|p}, a, b, c, members */
void decode_shuffle(struct builder *builder, const struct tokens *tokens)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    unsigned mode = 0;
    while (mode < 4 && token_find(tokens, modes[mode]) < 0)
        mode++;
    if (mode == 4 || last_type(tokens) != PTX_B32 || token_find(tokens, "sync") < 0) {
        decode_unsupported(builder);
        return;
    }
    const struct ptx_operand *to = operand_at(builder, 0);
    bool is_pair = to->kind == PTX_OPERAND_PAIR;
    uint32_t value = operand_source(builder, operand_at(builder, 1), PTX_B32);
    uint32_t by = operand_source(builder, operand_at(builder, 2), PTX_U32);
    uint32_t clamp = operand_source(builder, operand_at(builder, 3), PTX_U32);
    uint32_t members = operand_source(builder, operand_at(builder, 4), PTX_U32);
    uint32_t d = operand_destination(builder, is_pair ? &to->elements[0] : to, PTX_B32);
    uint32_t p = is_pair ? operand_destination_predicate(builder, &to->elements[1]) : NO_OPERAND;
    struct insn *insn = builder_emit(builder, run_shuffle);
    insn->mode = (uint8_t)mode;
    insn->a = value;
    insn->b = by;
    insn->c = clamp;
    insn->guard = members;
    insn->d = d;
    insn->p = p;
}

/* vote.sync.mode.pred p, a, members and vote.sync.ballot.b32 d, a, members */
void decode_vote(struct builder *builder, const struct tokens *tokens)
{
    static const char *const modes[] = {"all", "any", "uni", "ballot"};
    unsigned mode = 0;
    while (mode < 4 && token_find(tokens, modes[mode]) < 0)
        mode++;
    if (mode == 4 || token_find(tokens, "sync") < 0) {
        decode_unsupported(builder);
        return;
    }
    bool negated;
    uint32_t votes = operand_source_predicate(builder, operand_at(builder, 1), &negated);
    uint32_t members = operand_source(builder, operand_at(builder, 2), PTX_U32);
    uint32_t to = mode == VOTE_BALLOT
                      ? operand_destination(builder, operand_at(builder, 0), PTX_B32)
                      : operand_destination_predicate(builder, operand_at(builder, 0));
    struct insn *insn = builder_emit(builder, run_vote);
    insn->mode = (uint8_t)mode;
    insn->a = votes;
    insn->flags = negated ? INSN_NEGATE_C : 0;
    insn->guard = members;
    insn->d = to == NO_OPERAND ? builder_predicate_temporary(builder) : to;
}

/* match.any.sync.type d, a, members and match.all.sync.type d{|p}, a, members */
void decode_match(struct builder *builder, const struct tokens *tokens)
{
    enum ptx_type type = last_type(tokens);
    bool wide = type == PTX_B64;
    bool all = token_find(tokens, "all") >= 0;
    if ((type != PTX_B32 && !wide) || (!all && token_find(tokens, "any") < 0)) {
        decode_unsupported(builder);
        return;
    }
    const struct ptx_operand *to = operand_at(builder, 0);
    bool is_pair = to->kind == PTX_OPERAND_PAIR;
    uint32_t value = operand_source(builder, operand_at(builder, 1), type);
    uint32_t members = operand_source(builder, operand_at(builder, 2), PTX_U32);
    uint32_t d = operand_destination(builder, is_pair ? &to->elements[0] : to, PTX_B32);
    uint32_t p = is_pair ? operand_destination_predicate(builder, &to->elements[1]) : NO_OPERAND;
    struct insn *insn = builder_emit(builder, all ? (wide ? run_match_all_b64 : run_match_all_b32)
                                                  : (wide ? run_match_any_b64 : run_match_any_b32));
    insn->a = value;
    insn->guard = members;
    insn->d = d;
    insn->p = p;
}

/* redux.sync.op.type d, a, members */
void decode_redux(struct builder *builder, const struct tokens *tokens)
{
    static const struct {
        const char *name;
        enum atomic_op op;
    } ops[] = {
        {"add", ATOMIC_ADD}, {"min", ATOMIC_MIN}, {"max", ATOMIC_MAX},
        {"and", ATOMIC_AND}, {"or", ATOMIC_OR},   {"xor", ATOMIC_XOR},
    };
    enum ptx_type type = last_type(tokens);
    unsigned i = 0;
    while (i < 6 && token_find(tokens, ops[i].name) < 0)
        i++;
    if (i == 6 || ptx_type_size(type) != 4 || type == PTX_F32) {
        decode_unsupported(builder);
        return;
    }
    uint32_t value = operand_source(builder, operand_at(builder, 1), PTX_B32);
    uint32_t members = operand_source(builder, operand_at(builder, 2), PTX_U32);
    uint32_t d = operand_destination(builder, operand_at(builder, 0), PTX_B32);
    struct insn *insn = builder_emit(builder, run_redux);
    insn->mode = (uint8_t)ops[i].op;
    insn->width = type == PTX_S32;
    insn->a = value;
    insn->guard = members;
    insn->d = d;
}

/* elect.sync d|p, members */
void decode_elect(struct builder *builder, const struct tokens *tokens)
{
    const struct ptx_operand *to = operand_at(builder, 0);
    if (to->kind != PTX_OPERAND_PAIR) {
        decode_malformed(builder, "elect needs d|p");
        return;
    }
    uint32_t members = operand_source(builder, operand_at(builder, 1), PTX_U32);
    bool sink = to->elements[0].kind == PTX_OPERAND_SINK;
    uint32_t d = sink ? NO_OPERAND : operand_destination(builder, &to->elements[0], PTX_B32);
    uint32_t p = operand_destination_predicate(builder, &to->elements[1]);
    struct insn *insn = builder_emit(builder, run_elect);
    insn->guard = members;
    insn->d = d;
    insn->p = p == NO_OPERAND ? builder_predicate_temporary(builder) : p;
}

void decode_activemask(struct builder *builder, const struct tokens *tokens)
{
    uint32_t d = operand_destination(builder, operand_at(builder, 0), PTX_B32);
    builder_emit(builder, run_activemask)->d = d;
}
