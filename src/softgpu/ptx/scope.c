/* SPDX-License-Identifier: Apache-2.0 */
/* See scope.h. */
#include "scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024

void *parser_alloc(struct parser *parser, size_t size)
{
    void *memory = arena_alloc(parser->arena, size);
    if (!memory)
        lexer_fail(&parser->lexer, "out of memory");
    return memory;
}

void *parser_grow(struct parser *parser, void *items, size_t count, size_t item_size)
{
    void *memory = arena_grow(parser->arena, items, count, item_size);
    if (!memory)
        lexer_fail(&parser->lexer, "out of memory");
    return memory;
}

static uint32_t hash_name(uint32_t scope, const char *name, size_t length)
{
    uint32_t hash = 2166136261u ^ (scope * 2654435761u);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* The entry of this name, or the free one where it belongs. */
static struct name_entry *find_entry(struct parser *parser, uint32_t scope, const char *name,
                                     size_t length)
{
    uint32_t mask = parser->name_capacity - 1;
    for (uint32_t i = hash_name(scope, name, length) & mask;; i = (i + 1) & mask) {
        struct name_entry *entry = &parser->names[i];
        bool same = entry->name && entry->scope == scope && entry->length == length &&
                    memcmp(entry->name, name, length) == 0;
        if (same || !entry->name)
            return entry;
    }
}

static int grow_names(struct parser *parser)
{
    uint32_t old_capacity = parser->name_capacity;
    struct name_entry *old = parser->names;
    struct name_entry *larger = calloc(2 * (size_t)old_capacity, sizeof(*larger));
    if (!larger)
        return -ENOMEM;
    parser->names = larger;
    parser->name_capacity = 2 * old_capacity;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].name)
            *find_entry(parser, old[i].scope, old[i].name, old[i].length) = old[i];
    }
    free(old);
    return 0;
}

static struct name_entry *add_entry(struct parser *parser, uint32_t scope, const char *name,
                                    size_t length)
{
    if (parser->name_count * 2 >= parser->name_capacity && grow_names(parser) < 0) {
        lexer_fail(&parser->lexer, "out of memory");
        return NULL;
    }
    struct name_entry *entry = find_entry(parser, scope, name, length);
    if (entry->name) {
        lexer_fail(&parser->lexer, "'%.*s' is declared twice", (int)length, name);
        return NULL;
    }
    char *copy = arena_copy_text(parser->arena, name, length);
    if (!copy) {
        lexer_fail(&parser->lexer, "out of memory");
        return NULL;
    }
    *entry = (struct name_entry){.name = copy, .length = length, .scope = scope};
    parser->name_count++;
    return entry;
}

int scopes_init(struct parser *parser)
{
    parser->names = calloc(FIRST_CAPACITY, sizeof(*parser->names));
    if (!parser->names)
        return -ENOMEM;
    parser->name_capacity = FIRST_CAPACITY;
    parser->scopes = parser_grow(parser, NULL, 0, sizeof(*parser->scopes));
    parser->scope_count = 1;
    return parser->scopes ? 0 : -ENOMEM;
}

void scopes_fini(struct parser *parser)
{
    free(parser->names);
}

void scope_enter(struct parser *parser)
{
    if (++parser->depth > PTX_MAX_DEPTH) {
        lexer_fail(&parser->lexer, "blocks are nested too deeply");
        return;
    }
    struct scope *scopes =
        parser_grow(parser, parser->scopes, parser->scope_count, sizeof(*scopes));
    if (!scopes)
        return;
    parser->scopes = scopes;
    scopes[parser->scope_count] = (struct scope){.parent = parser->scope};
    parser->scope = parser->scope_count++;
}

void scope_leave(struct parser *parser)
{
    parser->depth--;
    parser->scope = parser->scopes[parser->scope].parent;
}

struct ptx_symbol *scope_add_symbol(struct parser *parser, enum ptx_symbol_kind kind,
                                    const struct token *name)
{
    struct name_entry *entry = add_entry(parser, parser->scope, name->text, name->length);
    struct ptx_symbol *symbol = entry ? parser_alloc(parser, sizeof(*symbol)) : NULL;
    if (!symbol)
        return NULL;
    symbol->name = entry->name;
    symbol->kind = kind;
    symbol->line = name->line;
    symbol->scope = parser->scope;
    symbol->home = parser->function;
    entry->symbol = symbol;
    return symbol;
}

struct ptx_symbol *scope_own_symbol(struct parser *parser, const char *name, size_t length)
{
    struct name_entry *entry = find_entry(parser, parser->scope, name, length);
    return entry->name && !entry->is_register ? entry->symbol : NULL;
}

void scope_add_registers(struct parser *parser, enum ptx_type type, const struct token *name,
                         uint64_t count, unsigned width)
{
    struct register_range *range = parser_alloc(parser, sizeof(*range));
    if (!range)
        return;
    range->prefix = arena_copy_text(parser->arena, name->text, name->length);
    range->length = name->length;
    range->count = count;
    range->width = width;
    range->type = type;
    struct scope *scope = &parser->scopes[parser->scope];
    range->next = scope->ranges;
    scope->ranges = range;
}

/* Whether name is the prefix of the range and a number below its count. */
static bool range_has(const struct register_range *range, const char *name, size_t length)
{
    if (length < range->length || memcmp(name, range->prefix, range->length) != 0)
        return false;
    if (range->count == 0)
        return length == range->length;
    uint64_t number = 0;
    size_t digits = length - range->length;
    if (digits == 0 || digits > 10)
        return false;
    for (size_t i = range->length; i < length; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(name[i] - '0');
    }
    return number < range->count;
}

static const struct register_range *find_range(const struct scope *scope, const char *name,
                                               size_t length)
{
    const struct register_range *range = scope->ranges;
    while (range && !range_has(range, name, length))
        range = range->next;
    return range;
}

/* The first use of a declared name makes the register. */
static bool make_registers(struct parser *parser, uint32_t scope,
                           const struct register_range *range, const char *name, size_t length,
                           struct name_entry *ret_entry)
{
    struct ptx_function *function = parser->function;
    if (!function || function->register_count + range->width > PTX_MAX_REGISTERS) {
        lexer_fail(&parser->lexer, "too many registers");
        return false;
    }
    struct name_entry *entry = add_entry(parser, scope, name, length);
    if (!entry)
        return false;
    entry->is_register = true;
    entry->reg = function->register_count;
    entry->width = range->width;
    for (unsigned i = 0; i < range->width; i++) {
        struct ptx_register *registers =
            parser_grow(parser, function->registers, function->register_count, sizeof(*registers));
        if (!registers)
            return false;
        function->registers = registers;
        registers[function->register_count++] =
            (struct ptx_register){.name = entry->name, .type = range->type};
    }
    *ret_entry = *entry;
    return true;
}

bool scope_find(struct parser *parser, uint32_t scope, const char *name, size_t length,
                struct name_entry *ret_entry)
{
    if (parser->lexer.failed)
        return false;
    for (;; scope = parser->scopes[scope].parent) {
        struct name_entry *entry = find_entry(parser, scope, name, length);
        if (entry->name) {
            *ret_entry = *entry;
            return true;
        }
        const struct register_range *range = find_range(&parser->scopes[scope], name, length);
        if (range)
            return make_registers(parser, scope, range, name, length, ret_entry);
        if (scope == 0)
            return false;
    }
}
