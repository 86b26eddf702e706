/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operands of the instruction that is decoded: registers, constants, addresses.
 *
 * Offsets are bytes in the register file. An invalid operand fails the builder with
 * CUDA_ERROR_INVALID_PTX, and the result is a valid placeholder, which never runs. Operands belong
 * to the module. The thread that builds calls the functions.
 */
#pragma once

#include "builder.h"

unsigned operand_count(const struct builder *builder);
/* Fails where there is none of this index, and gives a sink. */
const struct ptx_operand *operand_at(struct builder *builder, unsigned index);
/* Whether a lane's value takes 8 bytes. */
bool is_wide_type(enum ptx_type type);
/* Of an operand that is a register. */
enum ptx_type register_type(const struct builder *builder, const struct ptx_operand *operand);
bool is_register(const struct builder *builder, const struct ptx_operand *operand,
                 bool want_predicate);
/* A row that holds this in all lanes; equal ones share it. */
uint32_t operand_constant(struct builder *builder, uint64_t bits, bool is_wide);
/* Offset of a source of this type, whatever it is; may emit code that fetches it. */
uint32_t operand_source(struct builder *builder, const struct ptx_operand *operand,
                        enum ptx_type type);
/* A predicate source; *ret_negated is for !p. A constant predicate is possible. */
uint32_t operand_source_predicate(struct builder *builder, const struct ptx_operand *operand,
                                  bool *ret_negated);
/* NO_OPERAND for a sink. */
uint32_t operand_destination_predicate(struct builder *builder, const struct ptx_operand *operand);
/*
 * A destination for a value of this type. If the register is wider the value goes into a temporary,
 * and operand_finish_destination emits what widens it.
 */
uint32_t operand_destination(struct builder *builder, const struct ptx_operand *operand,
                             enum ptx_type type);
void operand_finish_destination(struct builder *builder, const struct ptx_operand *operand,
                                enum ptx_type type, uint32_t offset);
/* The offset of a .param or .local variable in its function's frame; false when it is an entry's
 * parameter. */
bool operand_frame_offset(struct builder *builder, const struct ptx_symbol *symbol,
                          uint32_t *ret_offset);
/* Of a parameter of the function that is decoded: in its frame, or an entry's in the parameter
 * buffer. */
uint32_t param_offset(struct builder *builder, const struct ptx_symbol *symbol);
