/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parser's files. Every parse_ function starts at the current token and advances
 * behind its tokens. Errors latch in the lexer, so callers check once, at the end.
 */
#pragma once

#include "lex.h"
#include "ptx.h"

/* A declaration like .reg .b32 %r<7>; names become registers when they are first used. */
struct register_range {
    struct register_range *next;
    const char *prefix;
    size_t length;
    uint64_t count; /* 0: a single register of exactly this name */
    unsigned width; /* of a vector: 2 or 4 registers under one name */
    enum ptx_type type;
};

struct scope {
    uint32_t parent;
    struct register_range *ranges;
};

struct name_entry {
    const char *name; /* NULL: free */
    size_t length;
    uint32_t scope;
    bool is_register;
    uint32_t reg;
    unsigned width; /* registers of a vector, from reg on */
    struct ptx_symbol *symbol;
};

/* A register that takes a result behind a call. */
struct call_result {
    struct ptx_operand to;
    struct ptx_symbol *from;
};

struct parser {
    struct lexer lexer;
    struct ptx_module *module;
    struct arena *arena;
    struct ptx_function *function;     /* the one whose body is parsed */
    struct ptx_symbol *branch_targets; /* those of the body, linked by next_in_scope */
    struct ptx_symbol *unsized;        /* parameters of any size, linked by next_in_scope */
    uint64_t largest_argument;         /* of all .param variables in bodies */
    struct scope *scopes;
    uint32_t scope_count;
    uint32_t scope; /* the innermost; 0 is the module */
    uint32_t depth;
    const char *opcode;     /* of the instruction whose operands are parsed */
    bool declarations_only; /* bodies are skipped, and initial values may name anything */
    bool in_call;           /* where '(' begins a list */
    bool in_prototype;      /* whose parameters have no names that count */
    struct call_result *results;
    uint32_t result_count;
    struct name_entry *names;
    uint32_t name_count;
    uint32_t name_capacity;
};

/* parse_constant.c */
struct constant_value {
    enum constant_kind {
        CONSTANT_SIGNED,
        CONSTANT_UNSIGNED,
        CONSTANT_FLOAT, /* bits of a float, which is no part of an expression */
        CONSTANT_DOUBLE,
    } kind;
    uint64_t bits;
};
struct constant_value parse_value(struct parser *parser);

/* Everything behind .global, .shared, ... up to the semicolon. */
void parse_variables(struct parser *parser, enum ptx_space space, bool is_extern);
bool parse_space(struct parser *parser, enum ptx_space *ret_space);
/* To those of the function that is parsed, or of the module. */
void add_variable(struct parser *parser, struct ptx_symbol *symbol);

/* parse_body.c */
void parse_body(struct parser *parser);
void add_instruction(struct parser *parser, const struct ptx_instruction *instruction);

/* parse_module.c */
void parse_function(struct parser *parser, bool is_entry);
struct ptx_function *parse_prototype(struct parser *parser);
void skip_braces(struct parser *parser);
