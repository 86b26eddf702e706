/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_tex_query.h. */
#include "decode_tex_query.h"

#include "decode_tex.h"
#include "operand.h"
#include "tex_run.h"

static int attribute_of(const struct tokens *tokens)
{
    static const char *const names[] = {
        [QUERY_WIDTH] = "width",
        [QUERY_HEIGHT] = "height",
        [QUERY_DEPTH] = "depth",
        [QUERY_LAYERS] = "array_size",
        [QUERY_LEVELS] = "num_mipmap_levels",
        [QUERY_SAMPLES] = "num_samples",
        [QUERY_NORMALIZED] = "normalized_coords",
    };

    for (int i = QUERY_WIDTH; i <= QUERY_NORMALIZED; i++) {
        if (token_is(tokens, tokens->count - 2, names[i]))
            return i;
    }
    return -1;
}

/* txq.attribute.b32 d, [object]; txq.level.attribute.b32 d, [object], level; suq likewise */
void decode_tex_query(struct builder *builder, const struct tokens *tokens)
{
    bool is_surface = token_is(tokens, 0, "suq"), has_level = token_is(tokens, 1, "level");
    int attribute = attribute_of(tokens), last = is_surface ? QUERY_LAYERS : QUERY_NORMALIZED;
    const struct ptx_operand *place = operand_at(builder, 1);

    if (tokens->count != (has_level ? 4 : 3) || attribute < 0 || last_type(tokens) != PTX_B32 ||
        attribute > (has_level ? QUERY_DEPTH : last) || (has_level && is_surface) ||
        place->kind != PTX_OPERAND_ADDRESS || place->count != 1 || place->bits ||
        !tex_is_object(builder, &place->elements[0])) {
        decode_unsupported(builder);
        return;
    }
    uint32_t object = operand_source(builder, &place->elements[0], PTX_U64);
    uint32_t level =
        has_level ? operand_source(builder, operand_at(builder, 2), PTX_U32) : NO_OPERAND;
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_B32);
    if (builder->failed)
        return;
    struct insn *insn = builder_emit(builder, run_tex_query);
    insn->d = to;
    insn->a = object;
    insn->b = level;
    insn->mode = (uint8_t)attribute;
    insn->flags = is_surface;
    operand_finish_destination(builder, operand_at(builder, 0), PTX_B32, to);
}
