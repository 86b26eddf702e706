/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: one hash table of (scope, name), and scopes that know their parent.
 */
#pragma once

#include "parse.h"

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
                         uint64_t count, unsigned width);
/* Looks outward from `scope`; false when nothing has this name. */
bool scope_find(struct parser *parser, uint32_t scope, const char *name, size_t length,
                struct name_entry *ret_entry);

void *parser_alloc(struct parser *parser, size_t size);
void *parser_grow(struct parser *parser, void *items, size_t count, size_t item_size);
