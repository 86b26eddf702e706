/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands.
 *
 * A name that is not known yet may be a label further down. So names that are not registers,
 * variables or functions stay open until the whole body has been read.
 */
#pragma once

#include "parse.h"

/* parse_operand.c */
void parse_operand(struct parser *parser, struct ptx_operand *ret_operand);
/* The operand that names this register, which is declared; a vector's is a list. */
void operand_of_register(struct parser *parser, const struct token *name,
                         struct ptx_operand *ret_operand);
void resolve_operands(struct parser *parser, struct ptx_operand *operands, uint32_t count,
                      uint32_t line);
