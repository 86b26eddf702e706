/* SPDX-License-Identifier: Apache-2.0 */
/* See parse_variable.h. */
#include "parse_variable.h"

#include <string.h>

#include "parse_constant.h"
#include "scope.h"

#define MAX_VARIABLE_SIZE (1ull << 40)
#define MAX_ALIGN 65536

bool parse_space(struct parser *parser, enum ptx_space *ret_space)
{
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {
        {"global", PTX_GLOBAL}, {"const", PTX_CONST}, {"shared", PTX_SHARED},
        {"local", PTX_LOCAL},   {"param", PTX_PARAM}, {"tex", PTX_GLOBAL},
    };
    for (unsigned i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (lexer_accept_directive(&parser->lexer, spaces[i].name)) {
            *ret_space = spaces[i].space;
            return true;
        }
    }
    return false;
}

static uint32_t parse_align(struct parser *parser)
{
    uint64_t align = parse_constant(parser);
    if (align == 0 || align > MAX_ALIGN || (align & (align - 1)) != 0) {
        lexer_fail(&parser->lexer, "an alignment must be a power of two of at most %d", MAX_ALIGN);
        return 1;
    }
    return (uint32_t)align;
}

static void parse_attributes(struct parser *parser, struct ptx_variable *variable)
{
    struct lexer *lexer = &parser->lexer;
    lexer_expect(lexer, '(');
    while (!lexer->failed && !lexer_is(lexer, ')')) {
        variable->is_managed |= lexer_is_directive(lexer, "managed");
        lexer_next(lexer);
        if (lexer->token.kind == TOKEN_END)
            lexer_fail(lexer, "an attribute list does not end");
    }
    lexer_expect(lexer, ')');
}

/* Of a parameter that is a pointer: where it points to, which we do not use. */
static void skip_pointer_hints(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    enum ptx_space space;
    parse_space(parser, &space);
    if (lexer_accept_directive(lexer, "align"))
        parse_align(parser);
}

unsigned parse_vector_width(struct parser *parser)
{
    if (lexer_accept_directive(&parser->lexer, "v2"))
        return 2;
    if (lexer_accept_directive(&parser->lexer, "v4"))
        return 4;
    return lexer_accept_directive(&parser->lexer, "v8") ? 8 : 1;
}

/* The text before the name. element_size counts a whole vector. */
static void parse_specifiers(struct parser *parser, struct ptx_variable *variable,
                             uint64_t *ret_element_size)
{
    struct lexer *lexer = &parser->lexer;
    uint64_t width = 1;
    while (lexer->token.kind == TOKEN_DIRECTIVE && !lexer->failed) {
        if (lexer_accept_directive(lexer, "align")) {
            variable->align = parse_align(parser);
        } else if (lexer_accept_directive(lexer, "ptr")) {
            skip_pointer_hints(parser);
        } else if (lexer_accept_directive(lexer, "attribute")) {
            parse_attributes(parser, variable);
        } else if (lexer_is_directive(lexer, "v2") || lexer_is_directive(lexer, "v4") ||
                   lexer_is_directive(lexer, "v8")) {
            width = parse_vector_width(parser);
        } else {
            variable->type = ptx_type_from_name(lexer->token.text, lexer->token.length);
            if (variable->type == PTX_NO_TYPE)
                lexer_fail(lexer, "'.%.*s' is not a type", (int)lexer->token.length,
                           lexer->token.text);
            lexer_next(lexer);
        }
    }
    if (variable->type == PTX_NO_TYPE)
        lexer_fail(lexer, "a variable needs a type");
    *ret_element_size = width * ptx_type_size(variable->type);
}

static uint64_t parse_dimensions(struct parser *parser, uint64_t element_size)
{
    uint64_t size = element_size;
    while (lexer_accept(&parser->lexer, '[')) {
        uint64_t count = lexer_is(&parser->lexer, ']') ? 0 : parse_constant(parser);
        lexer_expect(&parser->lexer, ']');
        if (count != 0 && size > MAX_VARIABLE_SIZE / count) {
            lexer_fail(&parser->lexer, "a variable is too large");
            return 0;
        }
        size *= count;
    }
    return size;
}

static struct ptx_symbol *declare(struct parser *parser, const struct token *name,
                                  const struct ptx_variable *variable)
{
    struct ptx_symbol *symbol = scope_own_symbol(parser, name->text, name->length);
    /* A declaration of something extern may be repeated, and the definition may follow it. */
    bool again = symbol && symbol->kind == PTX_VARIABLE &&
                 (symbol->variable.is_extern || variable->is_extern);
    if (!again) {
        symbol = scope_add_symbol(parser, PTX_VARIABLE, name);
        if (symbol)
            symbol->variable = *variable;
    } else if (!variable->is_extern) {
        symbol->variable = *variable;
    }
    return symbol;
}

static struct ptx_symbol *parse_one(struct parser *parser, struct ptx_variable variable,
                                    uint64_t element_size)
{
    struct lexer *lexer = &parser->lexer;
    struct token name = lexer->token;
    if (name.kind != TOKEN_NAME) {
        lexer_fail(lexer, "expected the name of a variable");
        return NULL;
    }
    lexer_next(lexer);
    variable.size = parse_dimensions(parser, element_size);
    if (variable.align == 0)
        variable.align = element_size ? (uint32_t)element_size : 1;
    /* In a list of parameters, a prototype may call them all '_'. */
    if (name.length == 1 && name.text[0] == '_') {
        struct ptx_symbol *symbol = parser_alloc(parser, sizeof(*symbol));
        if (symbol)
            *symbol = (struct ptx_symbol){
                .name = "_", .kind = PTX_VARIABLE, .line = name.line, .variable = variable};
        return symbol;
    }
    return lexer->failed ? NULL : declare(parser, &name, &variable);
}

struct ptx_symbol *parse_register_parameter(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    struct ptx_variable variable = {.space = PTX_PARAM, .is_register = true};
    uint64_t size;
    parse_specifiers(parser, &variable, &size);
    struct token name = lexer->token;
    if (name.kind != TOKEN_NAME)
        lexer_fail(lexer, "expected the name of a parameter");
    lexer_next(lexer);
    struct ptx_symbol *symbol = lexer->failed ? NULL : parser_alloc(parser, sizeof(*symbol));
    if (!symbol)
        return NULL;
    variable.size = size;
    variable.align = (uint32_t)size;
    *symbol = (struct ptx_symbol){.name = arena_copy_text(parser->arena, name.text, name.length),
                                  .kind = PTX_VARIABLE,
                                  .line = name.line,
                                  .variable = variable};
    if (!parser->in_prototype)
        scope_add_registers(parser, variable.type, &name, 0,
                            (unsigned)(size / ptx_type_size(variable.type)));
    return symbol->name ? symbol : NULL;
}

struct ptx_symbol *parse_declarator(struct parser *parser, enum ptx_space space)
{
    struct ptx_variable variable = {.space = space};
    uint64_t element_size;
    parse_specifiers(parser, &variable, &element_size);
    return parse_one(parser, variable, element_size);
}

/* ---- Initial values ---- */

struct initializer {
    struct ptx_variable *variable;
    uint8_t *bytes;
    uint64_t capacity;
    uint64_t offset;
    unsigned element_size;
};

static bool reserve_bytes(struct parser *parser, struct initializer *init)
{
    uint64_t needed = init->offset + init->element_size;
    if (needed > init->variable->size) {
        lexer_fail(&parser->lexer, "more initial values than the variable holds");
        return false;
    }
    if (needed <= init->capacity)
        return true;
    uint64_t capacity = needed * 2 < 64 ? 64 : needed * 2;
    uint8_t *larger = parser_alloc(parser, capacity);
    if (!larger)
        return false;
    if (init->offset)
        memcpy(larger, init->bytes, init->offset);
    init->bytes = larger;
    init->capacity = capacity;
    return true;
}

static void put_bits(struct parser *parser, struct initializer *init, uint64_t bits)
{
    if (!reserve_bytes(parser, init))
        return;
    memcpy(init->bytes + init->offset, &bits, init->element_size < 8 ? init->element_size : 8);
    init->offset += init->element_size;
}

static uint64_t float_to_bits(enum ptx_type type, struct constant_value value)
{
    if (type == PTX_F32 && value.kind == CONSTANT_DOUBLE) {
        double wide;
        memcpy(&wide, &value.bits, sizeof(wide));
        float narrow = (float)wide;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof(bits));
        return bits;
    }
    return value.bits;
}

/* A symbol, generic(symbol), either with +offset. shift is where in the address the element's bytes
 * begin. */
static void put_address(struct parser *parser, struct initializer *init, uint32_t shift)
{
    struct lexer *lexer = &parser->lexer;
    bool is_generic = lexer->token.length == 7 && memcmp(lexer->token.text, "generic", 7) == 0;
    if (is_generic) {
        lexer_next(lexer);
        lexer_expect(lexer, '(');
    }
    struct name_entry entry = {0};
    bool found = lexer->token.kind == TOKEN_NAME &&
                 scope_find(parser, parser->scope, lexer->token.text, lexer->token.length, &entry);
    if ((!found && !parser->declarations_only) || entry.is_register) {
        lexer_fail(lexer, "an initial value names something that is not declared");
        return;
    }
    lexer_next(lexer);
    if (is_generic)
        lexer_expect(lexer, ')');
    int64_t addend = 0;
    if (lexer_accept(lexer, '+'))
        addend = (int64_t)parse_constant(parser);
    struct ptx_relocation *relocation = parser_alloc(parser, sizeof(*relocation));
    if (!relocation)
        return;
    *relocation = (struct ptx_relocation){
        .next = init->variable->relocations,
        .offset = init->offset,
        .size = init->element_size,
        .shift = shift,
        .symbol = entry.symbol,
        .addend = addend,
    };
    init->variable->relocations = relocation;
    put_bits(parser, init, 0);
}

/* 0xFF00(symbol): these bits of the address, moved down. */
static void put_masked_address(struct parser *parser, struct initializer *init, uint64_t mask)
{
    uint32_t shift = mask ? (uint32_t)__builtin_ctzll(mask) : 0;
    lexer_expect(&parser->lexer, '(');
    put_address(parser, init, shift);
    lexer_expect(&parser->lexer, ')');
}

/* A number in front of a bracket is the mask of an address. */
static bool parse_masked(struct parser *parser, struct initializer *init)
{
    struct lexer *lexer = &parser->lexer;
    struct lexer saved = *lexer;
    uint64_t mask = lexer->token.bits;
    if (lexer->token.kind != TOKEN_INTEGER)
        return false;
    lexer_next(lexer);
    if (lexer_is(lexer, '(')) {
        put_masked_address(parser, init, mask);
        return true;
    }
    *lexer = saved;
    return false;
}

static void parse_element(struct parser *parser, struct initializer *init)
{
    const struct token *token = &parser->lexer.token;
    bool is_warp_size =
        token->kind == TOKEN_NAME && token->length == 7 && memcmp(token->text, "WARP_SZ", 7) == 0;
    if (token->kind == TOKEN_NAME && !is_warp_size)
        put_address(parser, init, 0);
    else if (!parse_masked(parser, init))
        put_bits(parser, init, float_to_bits(init->variable->type, parse_value(parser)));
}

static void parse_initial(struct parser *parser, struct initializer *init)
{
    struct lexer *lexer = &parser->lexer;
    if (!lexer_accept(lexer, '{')) {
        parse_element(parser, init);
        return;
    }
    if (++parser->depth > PTX_MAX_DEPTH)
        lexer_fail(lexer, "initial values are nested too deeply");
    while (!lexer->failed && !lexer_is(lexer, '}')) {
        parse_initial(parser, init);
        if (!lexer_accept(lexer, ','))
            break;
    }
    parser->depth--;
    lexer_expect(lexer, '}');
}

/* x[] = {...}: the values say how large it is. */
static void size_from_values(struct ptx_variable *variable, const struct initializer *init)
{
    if (variable->size == MAX_VARIABLE_SIZE)
        variable->size = init->offset;
}

/* Up to the comma or semicolon behind it. */
static void skip_initializer(struct parser *parser, struct ptx_variable *variable)
{
    struct lexer *lexer = &parser->lexer;
    for (unsigned depth = 0; !lexer->failed && lexer->token.kind != TOKEN_END;) {
        if (depth == 0 && (lexer_is(lexer, ',') || lexer_is(lexer, ';')))
            return;
        variable->has_names |= lexer->token.kind == TOKEN_NAME;
        depth += lexer_is(lexer, '{');
        if (lexer_is(lexer, '}') && depth-- == 0)
            lexer_fail(lexer, "an initial value ends twice");
        lexer_next(lexer);
    }
}

static void parse_initializer(struct parser *parser, struct ptx_variable *variable)
{
    struct initializer init = {.variable = variable, .element_size = ptx_type_size(variable->type)};
    if (parser->declarations_only && variable->size) {
        skip_initializer(parser, variable);
        return;
    }
    if (variable->size == 0)
        variable->size = MAX_VARIABLE_SIZE;
    parse_initial(parser, &init);
    variable->initial = init.bytes;
    variable->initial_size = init.offset;
    size_from_values(variable, &init);
}

void add_variable(struct parser *parser, struct ptx_symbol *symbol)
{
    struct ptx_function *function = parser->function;
    struct ptx_symbol ***list = function ? &function->variables : &parser->module->variables;
    uint32_t *count = function ? &function->variable_count : &parser->module->variable_count;
    for (uint32_t i = 0; !function && symbol->variable.is_extern && i < *count; i++) {
        if ((*list)[i] == symbol)
            return;
    }
    if (function && symbol->variable.space == PTX_PARAM &&
        symbol->variable.size > parser->largest_argument)
        parser->largest_argument = symbol->variable.size;
    struct ptx_symbol **grown = parser_grow(parser, *list, *count, sizeof(*grown));
    if (!grown)
        return;
    *list = grown;
    symbol->index = *count;
    grown[(*count)++] = symbol;
}

void parse_variables(struct parser *parser, enum ptx_space space, bool is_extern)
{
    struct lexer *lexer = &parser->lexer;
    struct ptx_variable variable = {.space = space, .is_extern = is_extern};
    uint64_t element_size;
    parse_specifiers(parser, &variable, &element_size);
    do {
        struct ptx_symbol *symbol = parse_one(parser, variable, element_size);
        if (!symbol)
            return;
        bool known = symbol->index || (parser->module->variable_count && !parser->function &&
                                       parser->module->variables[0] == symbol);
        if (lexer_accept(lexer, '='))
            parse_initializer(parser, &symbol->variable);
        if (!known)
            add_variable(parser, symbol);
    } while (lexer_accept(lexer, ','));
    lexer_expect(lexer, ';');
}
