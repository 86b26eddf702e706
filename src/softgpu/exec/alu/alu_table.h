/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the opcode table's arithmetic rows, and the decoder's data about each.
 */
#pragma once

#include <stddef.h>

#include "insn.h"

/* Modifiers that mean the same wherever they are allowed. */
enum {
    MOD_FTZ = 1,
    MOD_ROUND = 2,       /* .rn .rz .rm .rp */
    MOD_SAT = 4,         /* clamp the result to [0, 1] */
    MOD_APPROX = 8,      /* .approx: we are at least as accurate */
    MOD_ROUND_EVEN = 16, /* .rn only */
    MOD_CLAMPS = 32,     /* .sat changes nothing */
};
#define FP (MOD_FTZ | MOD_ROUND | MOD_SAT | MOD_APPROX)

enum alu_op {
#define ALU_ROWS "alu.def"
#define ROW(name, suffix) ALU_##name##_##suffix,
#include "alu_each_row.h"
#define ALU_ROWS "convert.def"
#define ROW(name, suffix) ALU_##name##_##suffix,
#include "alu_each_row.h"
    ALU_COUNT,
};

enum alu_form {
    FORM_LANES,   /* d, a, b, c, e: registers; e is in insn.p */
    FORM_COMPARE, /* p or p|q, a, b, and a predicate with a boolean operator */
    FORM_TEST,    /* p, a */
    FORM_SELECT,  /* d, a, b, p */
};

struct alu_row {
    const char *name; /* with '_' for '.', the types behind the last '.' */
    enum alu_form form;
    uint8_t operands; /* sources */
    uint8_t modifiers;
    enum ptx_type types[5]; /* d, a, b, c, e */
};

extern const struct alu_row alu_rows[ALU_COUNT];

struct alu_handlers {
    handler_fn run;
    team_handler_fn in_team;
};

/* The handlers of one part of the table, in the order of its rows. */
struct alu_family {
    const struct alu_handlers *rows;
    unsigned count;
};

/* Compiled for several ISA variants. Any thread may call the functions. */
#define ALU_FAMILY(name) \
    extern const struct alu_family alu_##name##_base, alu_##name##_v3, alu_##name##_v4
ALU_FAMILY(integer);
ALU_FAMILY(float);
ALU_FAMILY(half);
ALU_FAMILY(compare);
ALU_FAMILY(convert_integer);
ALU_FAMILY(convert_float);
#undef ALU_FAMILY

/* A row's handler for one warp, of the best variant that runs here. */
handler_fn alu_handler(enum alu_op row);
/* The handler that does in several warps what this one does in one, or NULL. */
team_handler_fn alu_team_handler(handler_fn run);

/* The row of this opcode ("mul.wide.u32"), or -1. */
int alu_find(const char *name, size_t length);
