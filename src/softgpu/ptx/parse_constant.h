/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant expressions: C's operators on signed and unsigned numbers of 64 bits, and on doubles.
 *
 * Both sides of ?:, && and || are evaluated, since nothing in a constant has an effect; a division
 * by zero is an error wherever it stands.
 */
#pragma once

#include "parse.h"

/* One that is an integer. */
uint64_t parse_constant(struct parser *parser);
/* The same in angle brackets, so without comparisons. */
uint64_t parse_count(struct parser *parser);
