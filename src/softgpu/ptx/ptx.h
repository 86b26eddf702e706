/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PTX module as a tree: its declarations and instructions, with every name resolved.
 *
 * Instructions keep their opcode as written ("ld.global.v2.u32"); the table in exec/ gives opcodes
 * their meaning. All memory belongs to the module's arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

/* Limits that no real program meets, so that hostile text stays bounded. */
#define PTX_MAX_TEXT (256u << 20)
#define PTX_MAX_OPERANDS 256
#define PTX_MAX_REGISTERS 262144
#define PTX_MAX_DEPTH 64

enum ptx_type {
    PTX_NO_TYPE,
    PTX_PRED,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_B128,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_F16X2,
    PTX_BF16,
    PTX_BF16X2,
    PTX_F32,
    PTX_F64,
    PTX_TEXREF,
    PTX_SAMPLERREF,
    PTX_SURFREF,
    PTX_TYPE_COUNT,
};

enum ptx_space {
    PTX_NO_SPACE, /* generic */
    PTX_GLOBAL,
    PTX_CONST,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_PARAM,
};

enum ptx_symbol_kind {
    PTX_VARIABLE,
    PTX_FUNCTION,
    PTX_LABEL,
    PTX_BRANCH_TARGETS,
    PTX_PROTOTYPE,
};

/* The address of a symbol, to be written over part of a variable's initial value. */
struct ptx_relocation {
    struct ptx_relocation *next;
    uint64_t offset;
    uint32_t size;
    uint32_t shift; /* right shift of the address, for initializers that give it byte by byte */
    struct ptx_symbol *symbol;
    int64_t addend;
};

struct ptx_variable {
    enum ptx_space space;
    enum ptx_type type;
    uint32_t align;
    uint64_t size;          /* 0: an array of unknown size */
    const uint8_t *initial; /* the first initial_size bytes; the rest is zero */
    uint64_t initial_size;
    struct ptx_relocation *relocations;
    bool has_names; /* in the initial value, which ptx_parse_declarations() skips */
    bool is_extern;
    bool is_managed;
    bool is_register; /* a parameter that the text has in a register */
};

struct ptx_symbol {
    const char *name;
    enum ptx_symbol_kind kind;
    uint32_t line;
    uint32_t scope;
    uint32_t index; /* among symbols of its kind and home: free for the user of the tree */
    struct ptx_symbol *next_in_scope; /* while parsing */
    struct ptx_function *home;        /* the function it is declared in, NULL for the module's */
    union {
        struct ptx_variable variable;
        struct ptx_function *function;
        uint32_t target; /* of a label: index of the instruction behind it */
        struct {
            struct ptx_operand *labels;
            uint32_t count;
        } targets;
        struct ptx_function *prototype;
    };
};

enum ptx_operand_kind {
    PTX_OPERAND_REGISTER,
    PTX_OPERAND_INTEGER, /* bits */
    PTX_OPERAND_F32,     /* bits: those of the float */
    PTX_OPERAND_F64,
    PTX_OPERAND_SYMBOL,  /* symbol, and bits as an offset */
    PTX_OPERAND_SPECIAL, /* %tid.x and the like: name */
    PTX_OPERAND_ADDRESS, /* [a] or [a+bits]: base is elements[0], absent for [bits] */
    PTX_OPERAND_LIST,    /* {a, b} or (a, b) */
    PTX_OPERAND_PAIR,    /* p|q */
    PTX_OPERAND_SINK,    /* _ */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    bool negated; /* !p */
    uint32_t reg;
    uint32_t count;
    uint32_t scope;
    uint64_t bits;
    const char *name;
    struct ptx_symbol *symbol;
    struct ptx_operand *elements;
};

struct ptx_instruction {
    const char *opcode;
    struct ptx_operand *operands;
    uint32_t operand_count;
    uint32_t line;
    int32_t guard; /* register, or -1 */
    bool guard_negated;
};

struct ptx_register {
    const char *name;
    enum ptx_type type;
};

struct ptx_function {
    const char *name;
    struct ptx_symbol *symbol;
    uint32_t line;
    uint32_t index;
    bool is_entry;
    bool has_body;
    struct ptx_symbol **params;
    uint32_t param_count;
    struct ptx_symbol **returns;
    uint32_t return_count;
    struct ptx_instruction *instructions;
    uint32_t instruction_count;
    struct ptx_register *registers;
    uint32_t register_count;
    struct ptx_symbol **variables; /* those that the body declares */
    uint32_t variable_count;
    uint32_t max_threads[3];
    uint32_t required_threads[3];
    uint32_t required_cluster[3];
};

struct ptx_module {
    struct arena arena;
    uint32_t version; /* 90 for 9.0 */
    uint32_t target;  /* 80 for sm_80 */
    struct ptx_symbol **variables;
    uint32_t variable_count;
    struct ptx_function *
        *functions; /* one an entry or function, declarations joined with definitions */
    uint32_t function_count;
};

struct ptx_error {
    uint32_t line;
    bool unsupported; /* correct PTX, which the software GPU does not run */
    char text[512];
};

/* NULL on failure, with the reason in *ret_error. The text need not end with NUL. */
struct ptx_module *ptx_parse(const char *text, size_t size, struct ptx_error *ret_error);

/* The same without the code of functions, which may be anything: for the variables. */
struct ptx_module *ptx_parse_declarations(const char *text, size_t size,
                                          struct ptx_error *ret_error);

void ptx_module_destroy(struct ptx_module *module);

unsigned ptx_type_size(enum ptx_type type);
/* A texture, sampler or surface reference. */
bool ptx_type_is_reference(enum ptx_type type);
enum ptx_type ptx_type_from_name(const char *name, size_t length);
