/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the opcode table's arithmetic rows, and what the decoder knows of each.
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
#define OP1(name, suffix, ...) ALU_##name##_##suffix,
#define OP2(name, suffix, ...) ALU_##name##_##suffix,
#define OP3(name, suffix, ...) ALU_##name##_##suffix,
#define OP4(name, suffix, ...) ALU_##name##_##suffix,
#define FLOAT1(name, ...) ALU_##name##_f32,
#define FLOAT2(name, ...) ALU_##name##_f32,
#define FLOAT3(name, ...) ALU_##name##_f32,
#define CMP(name, suffix, ...) ALU_setp_##name##_##suffix,
#define TEST(name, suffix, ...) ALU_testp_##name##_##suffix,
#define SEL(name, suffix, ...) ALU_##name##_##suffix,
#define CARRY2(name, suffix, ...) ALU_##name##_##suffix,
#define CARRY3(name, suffix, ...) ALU_##name##_##suffix,
#include "alu.def"
#include "convert.def"
#undef OP1
#undef OP2
#undef OP3
#undef OP4
#undef FLOAT1
#undef FLOAT2
#undef FLOAT3
#undef CMP
#undef TEST
#undef SEL
#undef CARRY2
#undef CARRY3
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

/* The handlers, compiled for several ISA variants. Any thread may call the functions. */
extern const struct alu_handlers alu_handlers_base[ALU_COUNT];
extern const struct alu_handlers alu_handlers_v3[ALU_COUNT];
extern const struct alu_handlers alu_handlers_v4[ALU_COUNT];
/* A row's handler for one warp, of the best variant that runs here. */
handler_fn alu_handler(enum alu_op row);
/* The handler that does in several warps what this one does in one, or NULL. */
team_handler_fn alu_team_handler(handler_fn run);

/* The row of this opcode ("mul.wide.u32"), or -1. */
int alu_find(const char *name, size_t length);
