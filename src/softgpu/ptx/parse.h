/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parser's files share. Every parse_ function starts at the current token and leaves
 * behind what it took; errors latch in the lexer, so results are looked at once, at the end.
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
    struct ptx_symbol *symbol;
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
    struct name_entry *names;
    uint32_t name_count;
    uint32_t name_capacity;
};

/* scope.c */
int scopes_init(struct parser *parser);
void scopes_fini(struct parser *parser);
void scope_enter(struct parser *parser);
void scope_leave(struct parser *parser);
struct ptx_symbol *scope_add_symbol(struct parser *parser, enum ptx_symbol_kind kind,
                                    const struct token *name);
/* Declared in exactly the innermost scope. */
struct ptx_symbol *scope_own_symbol(struct parser *parser, const char *name, size_t length);
void scope_add_registers(struct parser *parser, enum ptx_type type, const struct token *name,
                         uint64_t count);
/* Looks outward from `scope`; false when nothing has this name. */
bool scope_find(struct parser *parser, uint32_t scope, const char *name, size_t length,
                struct name_entry *ret_entry);

/* parse_operand.c */
void parse_operand(struct parser *parser, struct ptx_operand *ret_operand);
uint64_t parse_constant(struct parser *parser);
void resolve_operands(struct parser *parser, struct ptx_operand *operands, uint32_t count,
                      uint32_t line);

/* parse_variable.c */
struct ptx_symbol *parse_declarator(struct parser *parser, enum ptx_space space);
/* Everything behind .global, .shared, ... up to the semicolon. */
void parse_variables(struct parser *parser, enum ptx_space space, bool is_extern);
bool parse_space(struct parser *parser, enum ptx_space *ret_space);

/* parse_body.c */
void parse_body(struct parser *parser);

/* parse_module.c */
void parse_function(struct parser *parser, bool is_entry);
struct ptx_function *parse_prototype(struct parser *parser);
void skip_braces(struct parser *parser);

void *parser_alloc(struct parser *parser, size_t size);
void *parser_grow(struct parser *parser, void *items, size_t count, size_t item_size);
