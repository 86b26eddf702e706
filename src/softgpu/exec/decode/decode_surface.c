/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_surface.h. */
#include "decode_surface.h"

#include "decode_access.h"
#include "decode_memory.h"
#include "decode_tex.h"
#include "operand.h"
#include "surface_run.h"

struct surface_access {
    int shape;
    uint8_t bounds; /* enum surface_bounds */
    uint8_t width;
    enum ptx_type type;
};

/* How an access outside ends is the last word. */
static int bounds_of(const struct tokens *tokens)
{
    static const char *const names[] = {
        [SURFACE_TRAP] = "trap", [SURFACE_CLAMP] = "clamp", [SURFACE_ZERO] = "zero"};

    for (int i = SURFACE_TRAP; i <= SURFACE_ZERO; i++) {
        if (token_is(tokens, tokens->count - 1, names[i]))
            return i;
    }
    return -1;
}

static bool parse_access(struct builder *builder, const struct tokens *tokens,
                         struct surface_access *ret_access)
{
    int shape = tex_shape(tokens), bounds = bounds_of(tokens);

    if (tokens->count < 5 || shape < 0 || shape > SG_2D_LAYERED || bounds < 0 ||
        !token_is(tokens, 1, "b")) {
        decode_unsupported(builder);
        return false;
    }
    *ret_access = (struct surface_access){
        .shape = shape,
        .bounds = (uint8_t)bounds,
        .width = token_find(tokens, "v4") >= 0   ? 4
                 : token_find(tokens, "v2") >= 0 ? 2
                                                 : 1,
        .type = token_type(tokens, tokens->count - 2),
    };
    return true;
}

static bool is_untyped(enum ptx_type type)
{
    return type == PTX_B8 || type == PTX_B16 || type == PTX_B32 || type == PTX_B64;
}

/* suld and sust: how many elements there are, and that they fit into 16 bytes. */
static bool parse_values(struct builder *builder, const struct tokens *tokens,
                         const struct ptx_operand *values, struct surface_access *ret_access)
{
    if (!parse_access(builder, tokens, ret_access))
        return false;
    if (!is_untyped(ret_access->type) || ret_access->width * ptx_type_size(ret_access->type) > 16) {
        decode_unsupported(builder);
        return false;
    }
    if (values->kind == PTX_OPERAND_LIST ? values->count != ret_access->width
                                         : ret_access->width != 1) {
        decode_malformed(builder, "the vector has the wrong number of elements");
        return false;
    }
    return true;
}

static const struct ptx_operand *vector_element(const struct ptx_operand *from, unsigned index)
{
    return from->kind == PTX_OPERAND_LIST ? &from->elements[index] : from;
}

static enum ptx_type lane_type(enum ptx_type type)
{
    return type == PTX_B64 ? PTX_B64 : PTX_B32;
}

static struct insn *emit_access(struct builder *builder, const struct surface_access *access,
                                handler_fn run, uint32_t object)
{
    struct insn *insn = builder_emit(builder, run);

    insn->a = object;
    insn->space = (uint8_t)access->shape;
    insn->width = access->width;
    insn->mode = (uint8_t)ptx_type_size(access->type);
    insn->flags = access->bounds;
    return insn;
}

/* suld.b.shape{.v2 .v4}.type.bounds {values}, [object, {coordinates}] */
void decode_surface_load(struct builder *builder, const struct tokens *tokens)
{
    const struct ptx_operand *values = operand_at(builder, 0);
    uint32_t object, at[4], four[4] = {NO_OPERAND, NO_OPERAND, NO_OPERAND, NO_OPERAND};
    struct surface_access access;

    if (!parse_values(builder, tokens, values, &access) ||
        !tex_place(builder, operand_at(builder, 1), access.shape, PTX_S32, &object, at))
        return;
    enum ptx_type type = lane_type(access.type);
    for (unsigned i = 0; i < access.width; i++) {
        if (vector_element(values, i)->kind != PTX_OPERAND_SINK)
            four[i] = operand_destination(builder, vector_element(values, i), type);
    }
    if (builder->failed)
        return;
    tex_set_four(emit_access(builder, &access, run_surface_load, object), four);
    tex_carry(builder, at);
    for (unsigned i = 0; i < access.width; i++) {
        if (four[i] != NO_OPERAND)
            operand_finish_destination(builder, vector_element(values, i), type, four[i]);
    }
}

/* sust.b.shape{.v2 .v4}.type.bounds [object, {coordinates}], {values} */
void decode_surface_store(struct builder *builder, const struct tokens *tokens)
{
    const struct ptx_operand *values = operand_at(builder, 1);
    uint32_t object, at[4], four[4] = {NO_OPERAND, NO_OPERAND, NO_OPERAND, NO_OPERAND};
    struct surface_access access;

    if (!parse_values(builder, tokens, values, &access) ||
        !tex_place(builder, operand_at(builder, 0), access.shape, PTX_S32, &object, at))
        return;
    for (unsigned i = 0; i < access.width; i++)
        four[i] = operand_source(builder, vector_element(values, i), lane_type(access.type));
    tex_set_four(emit_access(builder, &access, run_surface_store, object), four);
    tex_carry(builder, at);
}

/* sured.b.op.shape.type.bounds [object, {coordinates}], value */
void decode_surface_reduction(struct builder *builder, const struct tokens *tokens)
{
    struct surface_access access;
    unsigned where;
    int op = decode_atomic_op(tokens, &where);
    uint32_t object, at[4];

    if (!parse_access(builder, tokens, &access))
        return;
    handler_fn run =
        op < 0 || access.width != 1 ? NULL : surface_reduction((enum atomic_op)op, access.type);
    if (!run) {
        decode_unsupported(builder);
        return;
    }
    if (!tex_place(builder, operand_at(builder, 0), access.shape, PTX_S32, &object, at))
        return;
    uint32_t value =
        operand_source(builder, vector_element(operand_at(builder, 1), 0), access.type);
    struct insn *insn = emit_access(builder, &access, run, object);
    insn->b = value;
    insn->imm = (uint64_t)op;
    tex_carry(builder, at);
}
