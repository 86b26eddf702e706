/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables: state space, type, dimensions and initial value.
 */
#pragma once

#include "parse.h"

/* parse_variable.c */
struct ptx_symbol *parse_declarator(struct parser *parser, enum ptx_space space);
/* Of a type: .v2 and the like. */
unsigned parse_vector_width(struct parser *parser);
/* A parameter in a register: what stands behind .reg. */
struct ptx_symbol *parse_register_parameter(struct parser *parser);
