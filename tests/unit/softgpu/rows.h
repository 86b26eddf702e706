/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows: one PTX instruction each, with a reference. All of them become kernels of one module, which
 * run on edge values and on random ones.
 */
#pragma once

#include "machine.h"

struct row {
    char opcode[40];
    unsigned sizes[4]; /* bits of d, a, b, c; 0 where there is no operand */
    unsigned bits;     /* of the type */
    bool is_signed;
    bool is_real;       /* d is floating point: whatever is no number will do */
    bool is_comparison; /* d is a predicate */
    unsigned op;
    int rounding;
    const char *last; /* a further operand, such as a table; or NULL */
    uint64_t (*reference)(const struct row *row, uint64_t a, uint64_t b, uint64_t c);
    bool (*defined)(const struct row *row, uint64_t a, uint64_t b);
};

/* Fails the test at the first result that is not the reference's. */
void rows_check(const struct row *rows, unsigned count);
