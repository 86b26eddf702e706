/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters and results in registers. The tree knows .param variables alone. So a function with
 * parameters in registers loads them at its start and stores its results before it returns. For a
 * call with other arguments the parser makes .param variables.
 */
#pragma once

#include "parse.h"

/* parse_call.c */
void load_register_parameters(struct parser *parser);
/* In front of this instruction and with its guard. */
void store_register_results(struct parser *parser, const struct ptx_instruction *before);
void add_call(struct parser *parser, const struct ptx_instruction *call);
