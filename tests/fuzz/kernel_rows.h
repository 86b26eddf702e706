/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic rows of the software GPU's opcode table as the generator of kernels sees them.
 * They say how an instruction is spelled and what its operands are. They come from the table
 * itself, so a new row is generated without a change here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum row_form {
    ROW_COMPUTE, /* d, a, ...: of alu.def */
    ROW_CONVERT, /* d, a, ...: of convert.def */
    ROW_COMPARE, /* setp and set */
    ROW_TEST,    /* testp */
    ROW_SELECT,  /* selp */
    ROW_CARRY,   /* reads or writes the carry */
    ROW_FORMS,
};

struct row {
    const char *name;     /* with '_' for '.', without types */
    const char *suffix;   /* the types, with '_' between them */
    const char *types[5]; /* d, a, b, c, e: decides the size of registers */
    unsigned operands;    /* sources */
    unsigned modifiers;   /* MOD_ of opcodes.h */
    enum row_form form;
    uint64_t hash; /* of name and suffix */
};

/* Rows that the generator leaves out, because PTX has no such spelling or leaves the result open,
 * are not among these. */
const struct row *row_at(unsigned index);
unsigned row_count(void);

/* One of the rows of this form. Another row in the table changes the choice only where that row is
 * taken, so it leaves most kernels as they were. */
const struct row *row_choose(enum row_form form, uint64_t draw);

/* What a row's modifiers are spelled as: .rn or another rounding, .ftz, .sat. */
struct spelling {
    const char *rounding; /* "" or ".rn" */
    bool flushes;
    bool saturates;
};
/* How many spellings a row has, and one of them. */
unsigned row_spellings(const struct row *row);
struct spelling row_spelling(const struct row *row, unsigned index);
void row_opcode(const struct row *row, struct spelling spelling, char *text, size_t size);

/* The first or last of the types in the suffix: "f32" of "f32_s16". */
bool row_last_type_is(const struct row *row, const char *type);
bool row_first_type_is(const struct row *row, const char *type);

uint64_t mix_bits(uint64_t bits);
