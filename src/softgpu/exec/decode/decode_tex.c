/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tex and tld4 on objects (the indirect mode): one insn with the object and the channels. Behind it
 * are nops that carry the coordinates and the gradients.
 */
#include "decode_tex.h"

#include "control_flow.h"
#include "operand.h"
#include "tex_run.h"

int tex_shape(const struct tokens *tokens)
{
    static const char *const names[] = {
        [SG_1D] = "1d",
        [SG_2D] = "2d",
        [SG_3D] = "3d",
        [SG_1D_LAYERED] = "a1d",
        [SG_2D_LAYERED] = "a2d",
        [SG_CUBE] = "cube",
        [SG_CUBE_LAYERED] = "acube",
    };

    for (int shape = SG_1D; shape <= SG_CUBE_LAYERED; shape++) {
        if (token_find(tokens, names[shape]) >= 0)
            return shape;
    }
    return -1;
}

void tex_set_four(struct insn *insn, const uint32_t four[4])
{
    insn->d = four[0];
    insn->b = four[1];
    insn->c = four[2];
    insn->p = four[3];
}

/* {a, b, c, d}, or fewer of them: those that are not there are NO_OPERAND. */
static bool list_sources(struct builder *builder, const struct ptx_operand *list,
                         enum ptx_type first, enum ptx_type rest, uint32_t ret_four[4])
{
    for (unsigned i = 0; i < 4; i++)
        ret_four[i] = NO_OPERAND;
    if (list->kind != PTX_OPERAND_LIST || list->count == 0 || list->count > 4) {
        decode_malformed(builder, "a vector of one to four is needed");
        return false;
    }
    for (unsigned i = 0; i < list->count; i++)
        ret_four[i] = operand_source(builder, &list->elements[i], i == 0 ? first : rest);
    return !builder->failed;
}

bool tex_is_layered(int shape)
{
    return shape == SG_1D_LAYERED || shape == SG_2D_LAYERED || shape == SG_CUBE_LAYERED;
}

bool tex_is_object(struct builder *builder, const struct ptx_operand *operand)
{
    bool is_variable = operand->kind == PTX_OPERAND_SYMBOL && operand->symbol->kind == PTX_VARIABLE;

    return is_variable ? ptx_type_is_reference(operand->symbol->variable.type)
                       : is_register(builder, operand, false);
}

/* How many coordinates a shape has, with the layer and without padding. */
static unsigned coordinate_count(int shape)
{
    static const uint8_t counts[] = {
        [SG_1D] = 1,         [SG_2D] = 2,   [SG_3D] = 3,          [SG_1D_LAYERED] = 2,
        [SG_2D_LAYERED] = 3, [SG_CUBE] = 3, [SG_CUBE_LAYERED] = 4};
    return counts[shape];
}

bool tex_place(struct builder *builder, const struct ptx_operand *place, int shape,
               enum ptx_type type, uint32_t *ret_object, uint32_t ret_at[4])
{
    if (place->kind != PTX_OPERAND_ADDRESS || place->count != 2 || place->bits ||
        !tex_is_object(builder, &place->elements[0])) {
        decode_unsupported(builder);
        return false;
    }
    if (place->elements[1].count < coordinate_count(shape)) {
        decode_malformed(builder, "too few coordinates");
        return false;
    }
    *ret_object = operand_source(builder, &place->elements[0], PTX_U64);
    return list_sources(builder, &place->elements[1], tex_is_layered(shape) ? PTX_U32 : type, type,
                        ret_at);
}

void tex_carry(struct builder *builder, const uint32_t four[4])
{
    tex_set_four(builder_emit(builder, run_nop), four);
}

/* The lists of a .grad, or the one value of a .level. */
static bool detail_sources(struct builder *builder, const struct tokens *tokens, int shape,
                           uint32_t ret_detail[2][4], uint8_t *ret_mode)
{
    bool is_cube = shape == SG_CUBE || shape == SG_CUBE_LAYERED;
    bool has_level = token_find(tokens, "level") >= 0, has_grad = token_find(tokens, "grad") >= 0;
    unsigned least = shape == SG_3D || is_cube                  ? 3
                     : shape == SG_1D || shape == SG_1D_LAYERED ? 1
                                                                : 2;

    *ret_mode = has_level ? TEX_LEVEL : has_grad ? TEX_GRADIENT : TEX_BASE;
    if (operand_count(builder) != (has_level ? 3u : has_grad ? 4u : 2u)) {
        decode_unsupported(builder);
        return false;
    }
    if (has_level)
        ret_detail[0][0] = operand_source(builder, operand_at(builder, 2), PTX_F32);
    for (unsigned i = 0; has_grad && i < 2; i++) {
        const struct ptx_operand *list = operand_at(builder, 2 + i);
        if (list->count < least) {
            decode_malformed(builder, "too few gradients");
            return false;
        }
        if (!list_sources(builder, list, PTX_F32, PTX_F32, ret_detail[i]))
            return false;
    }
    return !builder->failed;
}

static bool four_destinations(struct builder *builder, const struct ptx_operand *list,
                              uint32_t ret_four[4])
{
    if (list->kind != PTX_OPERAND_LIST || list->count != 4) {
        decode_unsupported(builder);
        return false;
    }
    for (unsigned i = 0; i < 4; i++) {
        const struct ptx_operand *to = &list->elements[i];
        ret_four[i] =
            to->kind == PTX_OPERAND_SINK ? NO_OPERAND : operand_destination(builder, to, PTX_B32);
    }
    return !builder->failed;
}

static int gathered_channel(const struct tokens *tokens)
{
    static const char *const names[] = {"r", "g", "b", "a"};

    for (int i = 0; i < 4; i++) {
        if (token_is(tokens, 1, names[i]))
            return i;
    }
    return -1;
}

/* d|p: all memory of a texture is there, always. */
static void say_resident(struct builder *builder, const struct ptx_operand *to)
{
    uint32_t p = operand_destination_predicate(builder, to);

    if (p != NO_OPERAND)
        builder_emit(builder, run_tex_resident)->p = p;
}

/* tex{.base .level .grad}.shape.v4.type.ctype and tld4.channel.2d.v4.type.f32 */
void decode_tex(struct builder *builder, const struct tokens *tokens)
{
    bool is_gather = token_is(tokens, 0, "tld4");
    int shape = tex_shape(tokens), channel = is_gather ? gathered_channel(tokens) : 0;
    enum ptx_type ctype = last_type(tokens), type = token_type(tokens, tokens->count - 2);
    bool known = (type == PTX_F32 || type == PTX_S32 || type == PTX_U32) &&
                 (ctype == PTX_F32 || (ctype == PTX_S32 && !is_gather));
    bool is_pair = operand_at(builder, 0)->kind == PTX_OPERAND_PAIR;
    const struct ptx_operand *to =
        is_pair ? &operand_at(builder, 0)->elements[0] : operand_at(builder, 0);
    uint32_t object, at[4], four[4], detail[2][4] = {{0}};
    uint8_t mode = TEX_BASE;

    if (shape < 0 || channel < 0 || !known || token_find(tokens, "v4") < 0 ||
        (is_gather && shape != SG_2D)) {
        decode_unsupported(builder);
        return;
    }
    if (!four_destinations(builder, to, four) ||
        !tex_place(builder, operand_at(builder, 1), shape, ctype, &object, at) ||
        !detail_sources(builder, tokens, shape, detail, &mode))
        return;
    struct insn *insn = builder_emit(builder, run_tex);
    tex_set_four(insn, four);
    insn->a = object;
    insn->mode = is_gather ? TEX_GATHER : mode;
    insn->space = (uint8_t)shape;
    insn->width = (uint8_t)channel;
    insn->flags = ctype == PTX_S32 ? TEX_COUNTS_ELEMENTS : 0;
    tex_carry(builder, at);
    tex_carry(builder, detail[0]);
    tex_carry(builder, detail[1]);
    if (is_pair)
        say_resident(builder, &operand_at(builder, 0)->elements[1]);
}
