/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module: version and target, variables, functions and entries.
 */
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "parse_constant.h"
#include "parse_variable.h"
#include "scope.h"

struct symbol_list {
    struct ptx_symbol **items;
    uint32_t count;
};

static void parse_parameter(struct parser *parser, struct symbol_list *list)
{
    struct lexer *lexer = &parser->lexer;
    bool is_register = lexer_accept_directive(lexer, "reg");
    if (!is_register && !lexer_accept_directive(lexer, "param")) {
        lexer_fail(lexer, "a parameter must be a .param or a .reg");
        return;
    }
    struct ptx_symbol *symbol =
        is_register ? parse_register_parameter(parser) : parse_declarator(parser, PTX_PARAM);
    struct ptx_symbol **items =
        symbol ? parser_grow(parser, list->items, list->count, sizeof(*items)) : NULL;
    if (!items)
        return;
    list->items = items;
    symbol->index = list->count;
    items[list->count++] = symbol;
    if (symbol->variable.size == 0) {
        symbol->next_in_scope = parser->unsized;
        parser->unsized = symbol;
    }
    if (list->count > PTX_MAX_OPERANDS * 16)
        lexer_fail(lexer, "too many parameters");
}

static struct symbol_list parse_parameters(struct parser *parser)
{
    struct symbol_list list = {0};
    if (!lexer_accept(&parser->lexer, '('))
        return list;
    while (!parser->lexer.failed && !lexer_is(&parser->lexer, ')')) {
        parse_parameter(parser, &list);
        if (!lexer_accept(&parser->lexer, ','))
            break;
    }
    lexer_expect(&parser->lexer, ')');
    return list;
}

/* (return) name (params) */
struct ptx_function *parse_prototype(struct parser *parser)
{
    struct ptx_function *prototype = parser_alloc(parser, sizeof(*prototype));
    if (!prototype)
        return NULL;
    struct symbol_list returns = parse_parameters(parser);
    if (parser->lexer.token.kind != TOKEN_NAME) {
        lexer_fail(&parser->lexer, "expected the name of a function");
        return NULL;
    }
    prototype->name =
        arena_copy_text(parser->arena, parser->lexer.token.text, parser->lexer.token.length);
    prototype->line = parser->lexer.token.line;
    lexer_next(&parser->lexer);
    struct symbol_list params = parse_parameters(parser);
    prototype->returns = returns.items;
    prototype->return_count = returns.count;
    prototype->params = params.items;
    prototype->param_count = params.count;
    return prototype;
}

static void parse_dimensions(struct parser *parser, uint32_t ret_values[3])
{
    for (unsigned i = 0; i < 3; i++)
        ret_values[i] = 1;
    for (unsigned i = 0; i < 3; i++) {
        ret_values[i] = (uint32_t)parse_constant(parser);
        if (!lexer_accept(&parser->lexer, ','))
            return;
    }
}

/* A variable may be declared on the same line. */
static void skip_values(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    while (lexer->token.kind == TOKEN_STRING || lexer->token.kind == TOKEN_INTEGER ||
           lexer->token.kind == TOKEN_NAME || lexer_is(lexer, ',') || lexer_is(lexer, '+'))
        lexer_next(lexer);
    lexer_accept(lexer, ';');
}

/* .maxntid and the others between a function's head and its body. */
static void parse_performance_directives(struct parser *parser, struct ptx_function *function)
{
    static const char *const hints[] = {"maxnreg",
                                        "minnctapersm",
                                        "maxnctapersm",
                                        "pragma",
                                        "maxclusterrank",
                                        "explicitcluster",
                                        "blocksareclusters",
                                        "abi_preserve",
                                        "abi_preserve_control"};
    struct lexer *lexer = &parser->lexer;
    while (lexer->token.kind == TOKEN_DIRECTIVE && !lexer->failed) {
        if (lexer_accept_directive(lexer, "maxntid")) {
            parse_dimensions(parser, function->max_threads);
        } else if (lexer_accept_directive(lexer, "reqntid")) {
            parse_dimensions(parser, function->required_threads);
        } else if (lexer_accept_directive(lexer, "reqnctapercluster")) {
            parse_dimensions(parser, function->required_cluster);
        } else if (!lexer_accept_directive(lexer, "noreturn")) {
            unsigned i = 0;
            while (i < sizeof(hints) / sizeof(hints[0]) && !lexer_is_directive(lexer, hints[i]))
                i++;
            if (i == sizeof(hints) / sizeof(hints[0]))
                lexer_fail(lexer, "'.%.*s' is not known here", (int)lexer->token.length,
                           lexer->token.text);
            lexer_next(lexer);
            skip_values(parser);
        }
    }
}

static struct ptx_function *add_function(struct parser *parser, const struct token *name)
{
    struct ptx_module *module = parser->module;
    struct ptx_symbol *symbol = scope_own_symbol(parser, name->text, name->length);
    if (symbol && symbol->kind == PTX_FUNCTION && !symbol->function->has_body)
        return symbol->function;
    symbol = scope_add_symbol(parser, PTX_FUNCTION, name);
    struct ptx_function *function = symbol ? parser_alloc(parser, sizeof(*function)) : NULL;
    struct ptx_function **list =
        function ? parser_grow(parser, module->functions, module->function_count, sizeof(*list))
                 : NULL;
    if (!list)
        return NULL;
    module->functions = list;
    symbol->function = function;
    function->symbol = symbol;
    function->name = symbol->name;
    function->index = symbol->index = module->function_count;
    list[module->function_count++] = function;
    return function;
}

static bool has_registers(const struct symbol_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i]->variable.is_register)
            return true;
    }
    return false;
}

/* Parameters live in a scope of the function's own, which its body shares. */
static void parse_signature(struct parser *parser, bool is_entry)
{
    struct lexer *lexer = &parser->lexer;
    struct ptx_function holder = {.is_entry = is_entry};
    parser->function = &holder;
    scope_enter(parser);
    struct symbol_list returns = parse_parameters(parser);
    struct token name = lexer->token;
    if (name.kind != TOKEN_NAME)
        lexer_fail(lexer, "expected the name of a function");
    lexer_next(lexer);
    struct symbol_list params = parse_parameters(parser);
    if (is_entry && (has_registers(&returns) || has_registers(&params)))
        lexer_fail(lexer, "a kernel's parameters must be .param");
    uint32_t scope = parser->scope;
    parser->scope = 0;
    parser->function = NULL;
    struct ptx_function *function = lexer->failed ? NULL : add_function(parser, &name);
    if (!function)
        return;
    function->line = name.line;
    function->is_entry = is_entry;
    function->returns = returns.items;
    function->return_count = returns.count;
    function->params = params.items;
    function->param_count = params.count;
    for (uint32_t i = 0; i < params.count; i++)
        params.items[i]->home = function;
    for (uint32_t i = 0; i < returns.count; i++)
        returns.items[i]->home = function;
    parser->function = function;
    parser->scope = scope;
}

static bool names_module_space(const struct lexer *lexer)
{
    return lexer_is_directive(lexer, "global") || lexer_is_directive(lexer, "const") ||
           lexer_is_directive(lexer, "tex");
}

/* A statement, or a part of one. An opcode like ld.global declares nothing. */
static void skip_in_body(struct parser *parser, unsigned *depth)
{
    struct lexer *lexer = &parser->lexer;
    enum ptx_space space;
    if (names_module_space(lexer) && parse_space(parser, &space)) {
        parse_variables(parser, space, false);
        return;
    }
    if (lexer->token.kind == TOKEN_NAME)
        lexer_extend_opcode(lexer);
    *depth += lexer_is(lexer, '{');
    *depth -= lexer_is(lexer, '}');
    lexer_next(lexer);
}

static void skip_body(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    for (unsigned depth = 1; depth && !lexer->failed;) {
        if (lexer->token.kind == TOKEN_END)
            lexer_fail(lexer, "a function does not end");
        else
            skip_in_body(parser, &depth);
    }
}

void parse_function(struct parser *parser, bool is_entry)
{
    struct lexer *lexer = &parser->lexer;
    parse_signature(parser, is_entry);
    if (lexer->failed)
        return;
    parse_performance_directives(parser, parser->function);
    if (!lexer_accept(lexer, '{'))
        lexer_expect(lexer, ';');
    else if (parser->declarations_only)
        skip_body(parser);
    else
        parse_body(parser);
    if (!lexer->failed)
        scope_leave(parser);
    parser->function = NULL;
}

static struct ptx_symbol *parse_function_name(struct parser *parser)
{
    struct token name = parser->lexer.token;
    struct ptx_symbol *symbol =
        name.kind == TOKEN_NAME ? scope_own_symbol(parser, name.text, name.length) : NULL;
    if (!symbol || symbol->kind != PTX_FUNCTION || symbol->function->is_entry) {
        lexer_fail(&parser->lexer, ".alias needs two functions");
        return NULL;
    }
    lexer_next(&parser->lexer);
    return symbol;
}

/* Another name for a function: both have been declared. */
static void parse_alias(struct parser *parser)
{
    struct ptx_symbol *alias = parse_function_name(parser);
    lexer_expect(&parser->lexer, ',');
    const struct ptx_symbol *aliasee = parse_function_name(parser);
    lexer_expect(&parser->lexer, ';');
    if (alias && alias->function->has_body)
        lexer_fail(&parser->lexer, "an alias has no body of its own");
    else if (alias && aliasee)
        alias->function = aliasee->function;
}

static void parse_version(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    /* 9.0 is read as a floating-point number. */
    double version = 0;
    if (lexer->token.kind == TOKEN_F64)
        memcpy(&version, &lexer->token.bits, sizeof(version));
    else
        lexer_fail(lexer, ".version needs a number like 9.0");
    if (!(version >= 1 && version < 100))
        lexer_fail(lexer, "this .version cannot be");
    parser->module->version = (uint32_t)(version * 10 + 0.5);
    lexer_next(lexer);
}

static void parse_target(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    do {
        struct token *token = &lexer->token;
        if (token->kind == TOKEN_NAME && token->length > 3 && memcmp(token->text, "sm_", 3) == 0)
            parser->module->target = (uint32_t)strtoul(token->text + 3, NULL, 10);
        lexer_next(lexer);
    } while (lexer_accept(lexer, ','));
}

static void parse_address_size(struct parser *parser)
{
    if (parser->lexer.token.bits != 64)
        lexer_fail(&parser->lexer, "only .address_size 64 is supported");
    lexer_next(&parser->lexer);
}

/* Debug sections. */
void skip_braces(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    while (!lexer->failed && lexer->token.kind != TOKEN_END && !lexer_is(lexer, '{'))
        lexer_next(lexer);
    while (!lexer->failed && lexer->token.kind != TOKEN_END && !lexer_is(lexer, '}'))
        lexer_next(lexer);
    lexer_expect(lexer, '}');
}

static bool parse_linkage(struct parser *parser, bool *ret_is_extern)
{
    struct lexer *lexer = &parser->lexer;
    bool any = false;
    *ret_is_extern = false;
    for (;;) {
        if (lexer_accept_directive(lexer, "extern"))
            any = *ret_is_extern = true;
        else if (lexer_accept_directive(lexer, "visible") ||
                 lexer_accept_directive(lexer, "weak") || lexer_accept_directive(lexer, "common"))
            any = true;
        else
            return any;
    }
}

static void parse_top_level(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    bool is_extern;
    enum ptx_space space;
    parse_linkage(parser, &is_extern);
    if (lexer_accept_directive(lexer, "entry"))
        parse_function(parser, true);
    else if (lexer_accept_directive(lexer, "func"))
        parse_function(parser, false);
    else if (lexer_accept_directive(lexer, "alias"))
        parse_alias(parser);
    else if (lexer_accept_directive(lexer, "version"))
        parse_version(parser);
    else if (lexer_accept_directive(lexer, "target"))
        parse_target(parser);
    else if (lexer_accept_directive(lexer, "address_size"))
        parse_address_size(parser);
    else if (lexer_is_directive(lexer, "section"))
        skip_braces(parser);
    else if (lexer_accept_directive(lexer, "file") || lexer_accept_directive(lexer, "loc") ||
             lexer_accept_directive(lexer, "pragma"))
        skip_values(parser);
    else if (parse_space(parser, &space))
        parse_variables(parser, space, is_extern);
    else if (!lexer_accept(lexer, ';'))
        lexer_fail(lexer, "'%.*s' is not known here",
                   (int)(lexer->token.length < 80 ? lexer->token.length : 80), lexer->token.text);
}

/* The last parameter of a variadic function takes as much as any call gives. */
static void size_variadic_parameters(struct parser *parser)
{
    for (struct ptx_symbol *one = parser->unsized; one; one = one->next_in_scope)
        one->variable.size = parser->largest_argument;
}

static void parse_all(struct parser *parser)
{
    while (!parser->lexer.failed && parser->lexer.token.kind != TOKEN_END)
        parse_top_level(parser);
    size_variadic_parameters(parser);
    if (!parser->lexer.failed && parser->module->version == 0)
        lexer_fail(&parser->lexer, "there is no .version: this is not PTX");
}

static struct ptx_module *parse_source(const char *text, size_t size, bool declarations_only,
                                       struct ptx_error *ret_error)
{
    struct ptx_module *module = calloc(1, sizeof(*module));
    *ret_error = (struct ptx_error){.text = "out of memory"};
    if (!module)
        return NULL;
    struct parser parser = {
        .module = module, .arena = &module->arena, .declarations_only = declarations_only};
    if (size > PTX_MAX_TEXT) {
        memcpy(ret_error->text, "the text is too large", 22);
        free(module);
        return NULL;
    }
    lexer_init(&parser.lexer, text, size, ret_error);
    if (scopes_init(&parser) == 0)
        parse_all(&parser);
    else
        parser.lexer.failed = true;
    scopes_fini(&parser);
    if (parser.lexer.failed) {
        ptx_module_destroy(module);
        return NULL;
    }
    return module;
}

struct ptx_module *ptx_parse(const char *text, size_t size, struct ptx_error *ret_error)
{
    return parse_source(text, size, false, ret_error);
}

struct ptx_module *ptx_parse_declarations(const char *text, size_t size,
                                          struct ptx_error *ret_error)
{
    return parse_source(text, size, true, ret_error);
}

void ptx_module_destroy(struct ptx_module *module)
{
    if (!module)
        return;
    arena_fini(&module->arena);
    free(module);
}
