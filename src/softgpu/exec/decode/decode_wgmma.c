/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_wgmma.h. */
#include "decode_wgmma.h"

#include <stdlib.h>
#include <string.h>

#include "control_flow.h"
#include "decode_matrix.h"
#include "operand.h"
#include "wgmma.h"
#include "wgmma_memory.h"

#define COLUMNS_MAX 256u
#define BITS_ALONG_K 256u

/* The shape: m64nNkK, where K is what 256 bits hold. */
static bool take_shape(const struct tokens *tokens, struct wgmma_op *op)
{
    const char *at = tokens->text[4], *end = at + tokens->length[4];
    char *behind;

    if (!token_starts(tokens, 4, "m64n"))
        return false;
    op->n = (uint16_t)strtoul(at + strlen("m64n"), &behind, 10);
    if (*behind != 'k')
        return false;
    op->block.k = (uint16_t)strtoul(behind + 1, &behind, 10);
    return behind == end && op->n > 0 && op->n <= COLUMNS_MAX && op->n % WGMMA_SIDE == 0;
}

static bool is_of_integers(const struct wgmma_op *op)
{
    return op->block.d.element == FRAGMENT_S32;
}

/* Beyond 8 and 24, integers have multiples of 16 columns only. */
static bool columns_exist(const struct wgmma_op *op)
{
    return !is_of_integers(op) || op->n % 16 == 0 || op->n == 8 || op->n == 24;
}

/* d, a, b */
static bool take_types(const struct tokens *tokens, struct wgmma_op *op)
{
    enum fragment_element types[4];
    struct matrix_op *block = &op->block;

    if (matrix_elements(tokens, types) != 3)
        return false;
    block->m = WGMMA_ROWS;
    block->n = WGMMA_SIDE;
    block->d = block->c = matrix_fragment(types[0]);
    block->a = matrix_fragment(types[1]);
    block->b = matrix_fragment(types[2]);
    block->a.depth = block->b.depth = block->k;
    block->saturates = token_find(tokens, "satfinite") >= 0;
    block->counts_and = token_find(tokens, "and") >= 0;
    return matrix_may_meet(types[1], types[2]) && matrix_is_accumulator(types[1], types[0]) &&
           (unsigned)block->k * block->a.bits == BITS_ALONG_K && block->a.element != FRAGMENT_S4 &&
           block->a.element != FRAGMENT_U4 && columns_exist(op) &&
           (is_of_integers(op) || !block->saturates) &&
           block->counts_and == (block->a.element == FRAGMENT_B1);
}

/* D is read and written in the same registers. */
static void take_d(struct builder *builder, struct wgmma_op *op)
{
    const struct ptx_operand *list = operand_at(builder, 0);
    unsigned count = op->n * WGMMA_ROWS * op->block.d.bits / (32 * LANES);

    op->block.d.count = op->block.c.count =
        (uint8_t)(WGMMA_SIDE * WGMMA_ROWS * op->block.d.bits / (32 * LANES));
    if (list->kind != PTX_OPERAND_LIST || list->count != count) {
        decode_malformed(builder, "a matrix has the wrong number of registers");
        return;
    }
    for (unsigned i = 0; i < count && !builder->failed; i++) {
        op->registers[i] = operand_destination(builder, &list->elements[i], PTX_B32);
        if (operand_source(builder, &list->elements[i], PTX_B32) != op->registers[i])
            decode_malformed(builder, "a matrix in registers that are not of 32 bits");
    }
}

static void take_a(struct builder *builder, struct wgmma_op *op)
{
    const struct ptx_operand *from = operand_at(builder, 1);

    op->a.descriptor = NO_OPERAND;
    if (from->kind != PTX_OPERAND_LIST) {
        op->a.descriptor = operand_source(builder, from, PTX_B64);
        return;
    }
    op->block.a.count = WGMMA_ROWS * WGMMA_WORDS / LANES;
    if (from->count != op->block.a.count) {
        decode_malformed(builder, "a matrix has the wrong number of registers");
        return;
    }
    for (unsigned i = 0; i < op->block.a.count && !builder->failed; i++)
        op->block.a.registers[i] = operand_source(builder, &from->elements[i], PTX_B32);
}

/* An immediate that is one of two values. */
static bool take_choice(struct builder *builder, unsigned index, uint64_t no, uint64_t yes)
{
    const struct ptx_operand *from = operand_at(builder, index);

    if (from->kind != PTX_OPERAND_INTEGER || (from->bits != no && from->bits != yes))
        decode_malformed(builder, "a scale or a transposition is not one of the values there are");
    return from->bits == yes;
}

/* imm-scale-a, imm-scale-b{, imm-trans-a}{, imm-trans-b}: of 16 bits only, and of A in memory */
static void take_choices(struct builder *builder, struct wgmma_op *op)
{
    unsigned next = 6;

    op->a.negated = take_choice(builder, 4, 1, (uint64_t)-1);
    op->b.negated = take_choice(builder, 5, 1, (uint64_t)-1);
    if (op->block.a.bits != 16)
        return;
    if (op->a.descriptor != NO_OPERAND)
        op->a.across = take_choice(builder, next++, 0, 1);
    op->b.across = take_choice(builder, next, 0, 1);
}

static unsigned operands_needed(const struct wgmma_op *op)
{
    unsigned of_memory = op->a.descriptor == NO_OPERAND ? 1 : 2;

    return is_of_integers(op) ? 4 : op->block.a.bits == 16 ? 6 + of_memory : 6;
}

static handler_fn handler_of(const struct wgmma_op *op)
{
    if (op->block.a.element == FRAGMENT_B1)
        return wgmma_handlers()->multiply_bits;
    return is_of_integers(op) ? wgmma_handlers()->multiply_s32 : wgmma_handlers()->multiply_f32;
}

/* The number of a copy of it in the program. */
static uint32_t keep_op(struct builder *builder, const struct wgmma_op *op)
{
    struct program *program = builder->program;
    struct wgmma_op *larger =
        realloc(program->wgmmas, (program->wgmma_count + 1) * sizeof(*larger));

    if (!larger) {
        decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        return 0;
    }
    program->wgmmas = larger;
    larger[program->wgmma_count] = *op;
    return program->wgmma_count++;
}

/* d, a, b-descriptor, scale-d{, choices} */
static void emit_multiply(struct builder *builder, struct wgmma_op *op)
{
    take_d(builder, op);
    take_a(builder, op);
    if (operand_count(builder) != operands_needed(op)) {
        decode_malformed(builder, "the wrong number of operands");
        return;
    }
    op->b.descriptor = operand_source(builder, operand_at(builder, 2), PTX_B64);
    op->scale = operand_source_predicate(builder, operand_at(builder, 3), &op->scale_negated);
    if (!is_of_integers(op))
        take_choices(builder, op);
    struct insn *insn = builder_emit(builder, handler_of(op));
    insn->matrix = keep_op(builder, op);
}

/* wgmma.{mma_async fence commit_group wait_group}.sync.aligned */
void decode_wgmma(struct builder *builder, const struct tokens *tokens)
{
    struct wgmma_op op = {.n = 0};

    if (!token_is(tokens, 2, "sync") || !token_is(tokens, 3, "aligned"))
        decode_unsupported(builder);
    else if (token_is(tokens, 1, "fence"))
        builder_emit(builder, run_nop);
    else if (token_is(tokens, 1, "commit_group"))
        builder_emit(builder, run_wgmma_commit);
    else if (token_is(tokens, 1, "wait_group") &&
             operand_at(builder, 0)->kind == PTX_OPERAND_INTEGER)
        builder_emit(builder, run_wgmma_wait)->imm = operand_at(builder, 0)->bits;
    else if (token_is(tokens, 1, "mma_async") && tokens->count > 6 && take_shape(tokens, &op) &&
             take_types(tokens, &op))
        emit_multiply(builder, &op);
    else
        decode_unsupported(builder);
}
