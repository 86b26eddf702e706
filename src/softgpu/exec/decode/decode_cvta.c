/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_cvta.h. */
#include "decode_cvta.h"

#include "address_space.h"
#include "alu_table.h"
#include "decode_memory.h"
#include "operand.h"

static handler_fn conversion(enum ptx_space space, bool to_generic)
{
    switch (space) {
    case PTX_SHARED:
        return to_generic ? run_shared_to_generic : run_generic_to_shared;
    case PTX_LOCAL:
        return to_generic ? run_local_to_generic : run_generic_to_local;
    case PTX_PARAM:
        return to_generic ? run_param_to_generic : run_generic_to_param;
    default:
        return alu_handler(ALU_mov_b64);
    }
}

void decode_cvta(struct builder *builder, const struct tokens *tokens)
{
    bool to_generic = token_find(tokens, "to") < 0;
    enum ptx_space space = PTX_NO_SPACE;
    for (unsigned i = 1; i < tokens->count; i++)
        token_space(tokens, i, &space);
    if (space == PTX_NO_SPACE || !is_wide_type(last_type(tokens))) {
        decode_unsupported(builder);
        return;
    }
    /* Inside a device function a parameter's address is one of the frame. */
    if (space == PTX_PARAM && !builder->function->is_entry)
        space = PTX_LOCAL;
    uint32_t from = operand_source(builder, operand_at(builder, 1), PTX_U64);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_U64);
    struct insn *insn = builder_emit(builder, conversion(space, to_generic));
    insn->a = from;
    insn->d = to;
}

void decode_isspacep(struct builder *builder, const struct tokens *tokens)
{
    enum ptx_space space = PTX_NO_SPACE;
    if (tokens->count != 2 || !token_space(tokens, 1, &space)) {
        decode_unsupported(builder);
        return;
    }
    uint32_t from = operand_source(builder, operand_at(builder, 1), PTX_U64);
    uint32_t to = operand_destination_predicate(builder, operand_at(builder, 0));
    struct insn *insn = builder_emit(builder, run_is_space);
    insn->a = from;
    insn->d = to;
    insn->space = (uint8_t)space;
    insn->mode = token_is(tokens, 1, "shared::cluster");
}
