/* SPDX-License-Identifier: Apache-2.0 */
/* See parse_operand.h. */
#include "parse_operand.h"

#include <stdio.h>
#include <string.h>

#include "parse_constant.h"
#include "scope.h"

/* Refuses the instruction by its name. */
static void operand_unsupported(struct parser *parser, const char *what)
{
    char text[128];
    snprintf(text, sizeof(text), "%s (%.64s)", what, parser->opcode ? parser->opcode : "");
    lexer_unsupported(&parser->lexer, text);
}

/* One register, or the list of a vector's. */
static void set_registers(struct parser *parser, const struct name_entry *entry,
                          struct ptx_operand *operand)
{
    operand->kind = PTX_OPERAND_REGISTER;
    operand->reg = entry->reg;
    if (entry->width == 1)
        return;
    operand->kind = PTX_OPERAND_LIST;
    operand->count = entry->width;
    operand->elements = parser_alloc(parser, entry->width * sizeof(*operand->elements));
    for (unsigned i = 0; operand->elements && i < entry->width; i++)
        operand->elements[i] =
            (struct ptx_operand){.kind = PTX_OPERAND_REGISTER, .reg = entry->reg + i};
}

void operand_of_register(struct parser *parser, const struct token *name,
                         struct ptx_operand *ret_operand)
{
    struct name_entry entry;
    if (scope_find(parser, parser->scope, name->text, name->length, &entry) && entry.is_register)
        set_registers(parser, &entry, ret_operand);
    else
        lexer_fail(&parser->lexer, "a parameter's name stands for something else");
}

/* The number of a vector's register that a letter means, or -1. */
static int component(const char *text, size_t length)
{
    static const char letters[] = "xyzwrgba";
    const char *found = length == 1 ? strchr(letters, text[0]) : NULL;
    return found ? (int)(found - letters) % 4 : -1;
}

/* Behind a register: .b0 or .h1, or .b3210 and .h10, as instructions on video have it. */
static bool is_part_of_register(const struct token *token)
{
    if (token->length < 2 || (token->text[0] != 'b' && token->text[0] != 'h'))
        return false;
    for (size_t i = 1; i < token->length; i++) {
        if (token->text[i] < '0' || token->text[i] > '7')
            return false;
    }
    return true;
}

/* v.x, where v is a vector; the token is behind v. */
static void parse_component(struct parser *parser, const struct name_entry *entry,
                            struct ptx_operand *operand)
{
    struct lexer *lexer = &parser->lexer;
    int which = component(lexer->token.text, lexer->token.length);
    if (is_part_of_register(&lexer->token))
        operand_unsupported(parser, "parts of registers");
    else if (which < 0 || (unsigned)which >= entry->width)
        lexer_fail(lexer, "'.%.*s' is not one of a vector's registers", (int)lexer->token.length,
                   lexer->token.text);
    operand->kind = PTX_OPERAND_REGISTER;
    operand->reg = entry->reg + (unsigned)which;
    lexer_next(lexer);
}

/* %v.x is one token, since %tid.x is. */
static bool parse_percent_component(struct parser *parser, const struct token *name,
                                    struct ptx_operand *operand)
{
    struct name_entry entry;
    const char *dot = memchr(name->text, '.', name->length);
    if (!dot || !scope_find(parser, parser->scope, name->text, (size_t)(dot - name->text), &entry))
        return false;
    int which = component(dot + 1, 1);
    if (!entry.is_register || which < 0 || (unsigned)which >= entry.width)
        lexer_fail(&parser->lexer, "'%.*s' is not one of a vector's registers", (int)name->length,
                   name->text);
    operand->kind = PTX_OPERAND_REGISTER;
    operand->reg = entry.reg + (unsigned)which;
    return true;
}

static void parse_named(struct parser *parser, struct ptx_operand *operand)
{
    struct lexer *lexer = &parser->lexer;
    struct token name = lexer->token;
    struct name_entry entry;
    bool found = scope_find(parser, parser->scope, name.text, name.length, &entry);
    lexer_next(lexer);
    operand->scope = parser->scope;
    if (found && entry.is_register) {
        if (lexer->token.kind == TOKEN_DIRECTIVE)
            parse_component(parser, &entry, operand);
        else
            set_registers(parser, &entry, operand);
        return;
    }
    if (!found && parse_percent_component(parser, &name, operand))
        return;
    if (name.length == 1 && name.text[0] == '_') {
        operand->kind = PTX_OPERAND_SINK;
        return;
    }
    operand->name = arena_copy_text(parser->arena, name.text, name.length);
    operand->kind = name.text[0] == '%' && !found ? PTX_OPERAND_SPECIAL : PTX_OPERAND_SYMBOL;
    if (found && entry.symbol->kind != PTX_LABEL)
        operand->symbol = entry.symbol;
}

static bool is_word(const struct token *token, const char *word)
{
    return token->kind == TOKEN_NAME && token->length == strlen(word) &&
           memcmp(token->text, word, token->length) == 0;
}

static void parse_number(struct parser *parser, struct ptx_operand *operand)
{
    static const enum ptx_operand_kind kinds[] = {
        [CONSTANT_SIGNED] = PTX_OPERAND_INTEGER,
        [CONSTANT_UNSIGNED] = PTX_OPERAND_INTEGER,
        [CONSTANT_FLOAT] = PTX_OPERAND_F32,
        [CONSTANT_DOUBLE] = PTX_OPERAND_F64,
    };
    struct constant_value value = parse_value(parser);
    operand->kind = kinds[value.kind];
    operand->bits = value.bits;
}

/* {a, b} and (a, b); the opening bracket has been taken. */
static void parse_list(struct parser *parser, struct ptx_operand *operand, char closing)
{
    struct lexer *lexer = &parser->lexer;
    bool was_in_call = parser->in_call;
    parser->in_call = false;
    operand->kind = PTX_OPERAND_LIST;
    while (!lexer->failed && !lexer_is(lexer, closing)) {
        struct ptx_operand *elements =
            parser_grow(parser, operand->elements, operand->count, sizeof(*operand->elements));
        if (!elements || operand->count >= PTX_MAX_OPERANDS) {
            lexer_fail(lexer, "a list has too many operands");
            return;
        }
        operand->elements = elements;
        parse_operand(parser, &elements[operand->count++]);
        if (!lexer_accept(lexer, ','))
            break;
    }
    parser->in_call = was_in_call;
    lexer_expect(lexer, closing);
}

/* [base+offset], [base, coordinates] or [base, sampler, coordinates]; the opening bracket has been
 * taken. */
static void parse_address(struct parser *parser, struct ptx_operand *operand)
{
    struct lexer *lexer = &parser->lexer;
    operand->kind = PTX_OPERAND_ADDRESS;
    operand->elements = parser_alloc(parser, 3 * sizeof(*operand->elements));
    if (!operand->elements)
        return;
    if (lexer->token.kind == TOKEN_NAME) {
        parse_named(parser, &operand->elements[0]);
        operand->count = 1;
        if (lexer_accept(lexer, '+'))
            operand->bits = parse_constant(parser);
    } else {
        operand->bits = parse_constant(parser);
    }
    while (operand->count > 0 && operand->count < 3 && lexer_accept(lexer, ','))
        parse_operand(parser, &operand->elements[operand->count++]);
    lexer_expect(lexer, ']');
}

static void parse_pair(struct parser *parser, struct ptx_operand *operand)
{
    struct ptx_operand *elements = parser_alloc(parser, 2 * sizeof(*elements));
    if (!elements)
        return;
    elements[0] = *operand;
    parse_operand(parser, &elements[1]);
    *operand = (struct ptx_operand){.kind = PTX_OPERAND_PAIR, .count = 2, .elements = elements};
}

static void parse_name_operand(struct parser *parser, struct ptx_operand *operand)
{
    struct lexer *lexer = &parser->lexer;
    if (is_word(&lexer->token, "WARP_SZ")) {
        parse_number(parser, operand);
        return;
    }
    parse_named(parser, operand);
    if (operand->kind == PTX_OPERAND_SYMBOL && lexer_accept(lexer, '+'))
        operand->bits = parse_constant(parser);
    else if (operand->kind == PTX_OPERAND_SYMBOL && lexer_is(lexer, '['))
        lexer_unsupported(lexer, "variables with an index in brackets");
    else if (lexer_accept(lexer, '|'))
        parse_pair(parser, operand);
}

void parse_operand(struct parser *parser, struct ptx_operand *ret_operand)
{
    struct lexer *lexer = &parser->lexer;
    *ret_operand = (struct ptx_operand){.scope = parser->scope};
    if (++parser->depth > PTX_MAX_DEPTH)
        lexer_fail(lexer, "operands are nested too deeply");
    if (lexer_accept(lexer, '{')) {
        parse_list(parser, ret_operand, '}');
        if (lexer_accept(lexer, '|'))
            parse_pair(parser, ret_operand);
    } else if (lexer_accept(lexer, '[')) {
        parse_address(parser, ret_operand);
    } else if (parser->in_call && lexer_accept(lexer, '(')) {
        parse_list(parser, ret_operand, ')');
    } else if (lexer_accept(lexer, '!')) {
        parse_operand(parser, ret_operand);
        ret_operand->negated = true;
    } else if (lexer_is(lexer, '-') && parser->opcode && strncmp(parser->opcode, "vmad", 4) == 0) {
        operand_unsupported(parser, "negated operands");
    } else if (lexer->token.kind == TOKEN_NAME) {
        parse_name_operand(parser, ret_operand);
    } else {
        parse_number(parser, ret_operand);
    }
    parser->depth--;
}

static void resolve_operand(struct parser *parser, struct ptx_operand *operand, uint32_t line)
{
    struct name_entry entry;
    if (!scope_find(parser, operand->scope, operand->name, strlen(operand->name), &entry) ||
        entry.is_register) {
        parser->lexer.token.line = line;
        lexer_fail(&parser->lexer, "'%.200s' is not declared", operand->name);
        return;
    }
    operand->symbol = entry.symbol;
}

void resolve_operands(struct parser *parser, struct ptx_operand *operands, uint32_t count,
                      uint32_t line)
{
    for (uint32_t i = 0; i < count && !parser->lexer.failed; i++) {
        if (operands[i].kind == PTX_OPERAND_SYMBOL && !operands[i].symbol)
            resolve_operand(parser, &operands[i], line);
        resolve_operands(parser, operands[i].elements, operands[i].count, line);
    }
}
