/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_wide.h. */
#include "decode_wide.h"

#include "alu_table.h"
#include "decode_memory.h"
#include "load_store.h"
#include "operand.h"
#include "wide_atomics.h"

struct halves {
    uint32_t low;
    uint32_t high;
};

static bool is_b128(struct builder *builder, const struct ptx_operand *one)
{
    if (is_register(builder, one, false) && register_type(builder, one) == PTX_B128)
        return true;
    decode_malformed(builder, "a register of 128 bits is needed");
    return false;
}

static struct halves halves_of(struct builder *builder, const struct ptx_operand *one)
{
    if (!is_b128(builder, one))
        return (struct halves){0};
    uint32_t low = layout_of(builder, builder->function)->registers[one->reg];
    return (struct halves){low, low + LANES * 8};
}

static bool is_pair(struct builder *builder, const struct ptx_operand *list)
{
    if (list->count == 2)
        return true;
    if (list->count == 4)
        decode_unsupported(builder);
    else
        decode_malformed(builder, "a value of 128 bits has two halves");
    return false;
}

static void emit_move(struct builder *builder, uint32_t d, uint32_t a)
{
    struct insn *insn = builder_emit(builder, alu_handler(ALU_mov_b64));
    insn->d = d;
    insn->a = a;
}

static void pack_elements(struct builder *builder, const struct ptx_operand *list)
{
    if (!is_pair(builder, list))
        return;
    uint32_t low = operand_source(builder, &list->elements[0], PTX_B64);
    uint32_t high = operand_source(builder, &list->elements[1], PTX_B64);
    struct halves to = halves_of(builder, operand_at(builder, 0));
    emit_move(builder, to.low, low);
    emit_move(builder, to.high, high);
}

static void unpack_elements(struct builder *builder, const struct ptx_operand *list)
{
    struct halves from = halves_of(builder, operand_at(builder, 1));
    if (!is_pair(builder, list))
        return;
    if (list->elements[0].kind != PTX_OPERAND_SINK)
        emit_move(builder, operand_destination(builder, &list->elements[0], PTX_B64), from.low);
    if (list->elements[1].kind != PTX_OPERAND_SINK)
        emit_move(builder, operand_destination(builder, &list->elements[1], PTX_B64), from.high);
}

/* mov.b128 d, a; d, {low, high}; {low, high}, a */
void decode_mov_b128(struct builder *builder)
{
    if (operand_at(builder, 1)->kind == PTX_OPERAND_LIST) {
        pack_elements(builder, operand_at(builder, 1));
    } else if (operand_at(builder, 0)->kind == PTX_OPERAND_LIST) {
        unpack_elements(builder, operand_at(builder, 0));
    } else {
        struct halves from = halves_of(builder, operand_at(builder, 1));
        struct halves to = halves_of(builder, operand_at(builder, 0));
        emit_move(builder, to.low, from.low);
        emit_move(builder, to.high, from.high);
    }
}

static struct insn *emit_at(struct builder *builder, handler_fn run, unsigned address,
                            const struct access *access)
{
    struct insn where = {0};
    decode_address(builder, operand_at(builder, address), access->space, &where);
    struct insn *insn = builder_emit(builder, run);
    insn->a = where.a;
    insn->imm = where.imm;
    insn->space = where.space;
    insn->flags = where.flags | (access->synchronizes ? INSN_SYNCHRONIZES : 0) |
                  (access->releases ? INSN_FENCE_BEFORE : 0);
    return insn;
}

/* The same as vectors of two, which are one access. */
void decode_load_b128(struct builder *builder, const struct access *access)
{
    struct halves to = halves_of(builder, operand_at(builder, 0));
    struct insn *insn = emit_at(builder, access_handlers(ACCESS_B64)->load_vector, 1, access);
    insn->width = 2;
    insn->d = to.low;
    insn->b = to.high;
}

void decode_store_b128(struct builder *builder, const struct access *access)
{
    struct halves from = halves_of(builder, operand_at(builder, 1));
    struct insn *insn = emit_at(builder, access_handlers(ACCESS_B64)->store_vector, 0, access);
    insn->width = 2;
    insn->d = from.low;
    insn->b = from.high;
}

/* atom.exch.b128 d, [a], b and atom.cas.b128 d, [a], b, c */
void decode_atomic_b128(struct builder *builder, const struct access *access, bool compares)
{
    const struct ptx_operand *to = operand_at(builder, 0);
    struct halves d = {NO_OPERAND, NO_OPERAND}, c = d;
    struct halves b = halves_of(builder, operand_at(builder, 2));
    if (to->kind != PTX_OPERAND_SINK)
        d = halves_of(builder, to);
    if (compares)
        c = halves_of(builder, operand_at(builder, 3));
    struct insn *insn =
        emit_at(builder, compares ? run_compare_and_swap_b128 : run_exchange_b128, 1, access);
    insn->d = d.low;
    insn->b = b.low;
    insn->c = c.low;
}
