/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands and constant expressions.
 *
 * A name that is not known yet may be a label further down, so names that are not registers,
 * variables or functions are left open and resolved when the whole body has been read.
 */
#include <string.h>

#include "parse.h"

static uint64_t parse_primary(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    uint64_t value = lexer->token.bits;
    if (lexer->token.kind == TOKEN_INTEGER) {
        lexer_next(lexer);
        return value;
    }
    if (lexer->token.kind == TOKEN_NAME && lexer->token.length == 7 &&
        memcmp(lexer->token.text, "WARP_SZ", 7) == 0) {
        lexer_next(lexer);
        return 32;
    }
    if (!lexer_accept(lexer, '(')) {
        lexer_fail(lexer, "expected a constant");
        return 0;
    }
    if (lexer_accept_directive(lexer, "s64") || lexer_accept_directive(lexer, "u64")) {
        lexer_expect(lexer, ')');
        return parse_constant(parser);
    }
    value = parse_constant(parser);
    lexer_expect(lexer, ')');
    return value;
}

static uint64_t parse_unary(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    if (++parser->depth > PTX_MAX_DEPTH)
        lexer_fail(lexer, "an expression is nested too deeply");
    uint64_t value;
    if (lexer_accept(lexer, '-'))
        value = -parse_unary(parser);
    else if (lexer_accept(lexer, '+'))
        value = parse_unary(parser);
    else if (lexer_accept(lexer, '~'))
        value = ~parse_unary(parser);
    else if (lexer_accept(lexer, '!'))
        value = !parse_unary(parser);
    else
        value = parse_primary(parser);
    parser->depth--;
    return value;
}

static uint64_t parse_product(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    uint64_t value = parse_unary(parser);
    for (;;) {
        if (lexer_accept(lexer, '*')) {
            value *= parse_unary(parser);
        } else if (lexer_is(lexer, '/') || lexer_is(lexer, '%')) {
            bool is_division = lexer_accept(lexer, '/');
            if (!is_division)
                lexer_next(lexer);
            uint64_t divisor = parse_unary(parser);
            if (divisor == 0) {
                lexer_fail(lexer, "division by zero in a constant");
                return 0;
            }
            value = is_division ? value / divisor : value % divisor;
        } else {
            return value;
        }
    }
}

static uint64_t parse_sum(struct parser *parser)
{
    uint64_t value = parse_product(parser);
    for (;;) {
        if (lexer_accept(&parser->lexer, '+'))
            value += parse_product(parser);
        else if (lexer_accept(&parser->lexer, '-'))
            value -= parse_product(parser);
        else
            return value;
    }
}

static uint64_t parse_shift(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    uint64_t value = parse_sum(parser);
    while ((lexer_is(lexer, '<') || lexer_is(lexer, '>')) && lexer->token.doubled) {
        bool left = lexer->token.punctuation == '<';
        lexer_next(lexer);
        uint64_t by = parse_sum(parser) & 63;
        value = left ? value << by : value >> by;
    }
    return value;
}

uint64_t parse_constant(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    uint64_t value = parse_shift(parser);
    for (;;) {
        if (lexer_accept(lexer, '&'))
            value &= parse_shift(parser);
        else if (lexer_accept(lexer, '|'))
            value |= parse_shift(parser);
        else if (lexer_accept(lexer, '^'))
            value ^= parse_shift(parser);
        else
            return value;
    }
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
        operand->kind = PTX_OPERAND_REGISTER;
        operand->reg = entry.reg;
        return;
    }
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
    struct lexer *lexer = &parser->lexer;
    bool negative = false;
    while (lexer_is(lexer, '-') && lexer->at < lexer->end && !negative) {
        struct lexer saved = *lexer;
        lexer_next(lexer);
        if (lexer->token.kind != TOKEN_F32 && lexer->token.kind != TOKEN_F64) {
            *lexer = saved;
            break;
        }
        negative = true;
    }
    enum token_kind kind = lexer->token.kind;
    if (kind == TOKEN_F32 || kind == TOKEN_F64) {
        operand->kind = kind == TOKEN_F32 ? PTX_OPERAND_F32 : PTX_OPERAND_F64;
        operand->bits = lexer->token.bits;
        if (negative)
            operand->bits ^= kind == TOKEN_F32 ? 0x80000000u : 1ull << 63;
        lexer_next(lexer);
    } else {
        operand->kind = PTX_OPERAND_INTEGER;
        operand->bits = parse_constant(parser);
    }
}

/* {a, b} and (a, b); the opening bracket has been taken. */
static void parse_list(struct parser *parser, struct ptx_operand *operand, char closing)
{
    struct lexer *lexer = &parser->lexer;
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
    lexer_expect(lexer, closing);
}

/* [base+offset] or [base, coordinates]; the opening bracket has been taken. */
static void parse_address(struct parser *parser, struct ptx_operand *operand)
{
    struct lexer *lexer = &parser->lexer;
    operand->kind = PTX_OPERAND_ADDRESS;
    operand->elements = parser_alloc(parser, 2 * sizeof(*operand->elements));
    if (!operand->elements)
        return;
    if (lexer->token.kind == TOKEN_NAME) {
        parse_named(parser, &operand->elements[0]);
        operand->count = 1;
        if (lexer_is(lexer, '+') || lexer_is(lexer, '-'))
            operand->bits = parse_constant(parser);
    } else {
        operand->bits = parse_constant(parser);
    }
    if (operand->count == 1 && lexer_accept(lexer, ',')) {
        parse_operand(parser, &operand->elements[1]);
        operand->count = 2;
    }
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
    if (operand->kind == PTX_OPERAND_SYMBOL && (lexer_is(lexer, '+') || lexer_is(lexer, '-')))
        operand->bits = parse_constant(parser);
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
    } else if (lexer_accept(lexer, '(')) {
        parse_list(parser, ret_operand, ')');
    } else if (lexer_accept(lexer, '!')) {
        parse_operand(parser, ret_operand);
        ret_operand->negated = true;
    } else if (lexer->token.kind == TOKEN_NAME) {
        parse_name_operand(parser, ret_operand);
    } else {
        parse_number(parser, ret_operand);
    }
    parser->depth--;
}

static void resolve(struct parser *parser, struct ptx_operand *operand, uint32_t line)
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
            resolve(parser, &operands[i], line);
        resolve_operands(parser, operands[i].elements, operands[i].count, line);
    }
}
