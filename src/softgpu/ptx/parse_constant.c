/* SPDX-License-Identifier: Apache-2.0 */
/* See parse_constant.h. */
#include "parse_constant.h"

#include <string.h>

static double as_double(struct constant_value value)
{
    double number;
    if (value.kind == CONSTANT_DOUBLE)
        memcpy(&number, &value.bits, sizeof(number));
    else
        number = value.kind == CONSTANT_SIGNED ? (double)(int64_t)value.bits : (double)value.bits;
    return number;
}

static struct constant_value of_double(double number)
{
    struct constant_value value = {.kind = CONSTANT_DOUBLE};
    memcpy(&value.bits, &number, sizeof(number));
    return value;
}

static struct constant_value of_bool(bool holds)
{
    return (struct constant_value){.kind = CONSTANT_SIGNED, .bits = holds};
}

static bool is_true(struct constant_value value)
{
    return value.kind == CONSTANT_DOUBLE ? as_double(value) != 0 : value.bits != 0;
}

static struct constant_value need_integer(struct parser *parser, struct constant_value value)
{
    if (value.kind == CONSTANT_SIGNED || value.kind == CONSTANT_UNSIGNED)
        return value;
    lexer_fail(&parser->lexer, "expected an integer in a constant");
    return of_bool(false);
}

/* ---- Operands ---- */

/* A literal without U is signed if it can be. */
static enum constant_kind kind_of_literal(const struct token *token)
{
    bool is_unsigned = token->length > 0 && token->text[token->length - 1] == 'U';
    return is_unsigned || token->bits > INT64_MAX ? CONSTANT_UNSIGNED : CONSTANT_SIGNED;
}

static bool accept_warp_size(struct lexer *lexer)
{
    bool found = lexer->token.kind == TOKEN_NAME && lexer->token.length == 7 &&
                 memcmp(lexer->token.text, "WARP_SZ", 7) == 0;
    if (found)
        lexer_next(lexer);
    return found;
}

static struct constant_value parse_unary(struct parser *parser);

/* Behind an opening bracket: an expression, or a type that the next operand is turned into. */
static struct constant_value parse_bracket(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    bool to_signed = lexer_accept_directive(lexer, "s64");
    if (to_signed || lexer_accept_directive(lexer, "u64")) {
        lexer_expect(lexer, ')');
        struct constant_value value = need_integer(parser, parse_unary(parser));
        value.kind = to_signed ? CONSTANT_SIGNED : CONSTANT_UNSIGNED;
        return value;
    }
    struct constant_value value = parse_value(parser);
    lexer_expect(lexer, ')');
    return value;
}

static struct constant_value parse_primary(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    struct constant_value value = {.bits = lexer->token.bits};
    switch (lexer->token.kind) {
    case TOKEN_INTEGER:
        value.kind = kind_of_literal(&lexer->token);
        break;
    case TOKEN_F32:
        value.kind = CONSTANT_FLOAT;
        break;
    case TOKEN_F64:
        value.kind = CONSTANT_DOUBLE;
        break;
    default:
        if (accept_warp_size(lexer))
            return (struct constant_value){.kind = CONSTANT_SIGNED, .bits = 32};
        if (lexer_accept(lexer, '('))
            return parse_bracket(parser);
        lexer_fail(lexer, "expected a constant");
        return value;
    }
    lexer_next(lexer);
    return value;
}

static struct constant_value negate(struct parser *parser, struct constant_value value)
{
    if (value.kind == CONSTANT_DOUBLE)
        return of_double(-as_double(value));
    value = need_integer(parser, value);
    value.bits = -value.bits;
    return value;
}

static struct constant_value parse_unary(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    struct constant_value value;
    if (++parser->depth > PTX_MAX_DEPTH)
        lexer_fail(lexer, "an expression is nested too deeply");
    if (lexer_accept(lexer, '-')) {
        value = negate(parser, parse_unary(parser));
    } else if (lexer_accept(lexer, '+')) {
        value = parse_unary(parser);
    } else if (lexer_accept(lexer, '~')) {
        value = need_integer(parser, parse_unary(parser));
        value.bits = ~value.bits;
    } else if (lexer_accept(lexer, '!')) {
        value = of_bool(!is_true(need_integer(parser, parse_unary(parser))));
    } else {
        value = parse_primary(parser);
    }
    parser->depth--;
    return value;
}

/* ---- Operators ---- */

enum operator_kind {
    MULTIPLY,
    DIVIDE,
    REMAINDER,
    ADD,
    SUBTRACT,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    LESS,
    GREATER,
    LESS_EQUAL,
    GREATER_EQUAL,
    EQUAL,
    NOT_EQUAL,
    BIT_AND,
    BIT_XOR,
    BIT_OR,
    BOTH,
    EITHER,
};

static const struct operator
{
    const char *text;
    unsigned rank; /* the lower, the closer it binds */
    enum operator_kind kind;
}
operators[] = {
    {"*", 1, MULTIPLY},   {"/", 1, DIVIDE},      {"%", 1, REMAINDER},      {"+", 2, ADD},
    {"-", 2, SUBTRACT},   {"<<", 3, SHIFT_LEFT}, {">>", 3, SHIFT_RIGHT},   {"<", 4, LESS},
    {">", 4, GREATER},    {"<=", 4, LESS_EQUAL}, {">=", 4, GREATER_EQUAL}, {"==", 5, EQUAL},
    {"!=", 5, NOT_EQUAL}, {"&", 6, BIT_AND},     {"^", 7, BIT_XOR},        {"|", 8, BIT_OR},
    {"&&", 9, BOTH},      {"||", 10, EITHER},
};

#define LOOSEST 10
#define SHIFTS 3 /* and what binds closer */

static const struct operator* find_operator(const struct lexer *lexer)
{
    const struct token *token = &lexer->token;
    for (unsigned i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        const char *text = operators[i].text;
        if (token->kind == TOKEN_PUNCTUATION && token->length == strlen(text) &&
            memcmp(token->text, text, token->length) == 0)
            return &operators[i];
    }
    return NULL;
}

static struct constant_value of_doubles(struct parser *parser, enum operator_kind kind, double a,
                                        double b)
{
    switch (kind) {
    case MULTIPLY:
        return of_double(a * b);
    case DIVIDE:
        return of_double(a / b);
    case ADD:
        return of_double(a + b);
    case SUBTRACT:
        return of_double(a - b);
    case LESS:
        return of_bool(a < b);
    case GREATER:
        return of_bool(a > b);
    case LESS_EQUAL:
        return of_bool(a <= b);
    case GREATER_EQUAL:
        return of_bool(a >= b);
    case EQUAL:
        return of_bool(a == b);
    case NOT_EQUAL:
        return of_bool(a != b);
    default:
        lexer_fail(&parser->lexer, "this operator is for integers");
        return of_double(0);
    }
}

static uint64_t divide(struct parser *parser, enum operator_kind kind, uint64_t a, uint64_t b,
                       bool is_signed)
{
    if (b == 0) {
        lexer_fail(&parser->lexer, "division by zero in a constant");
        return 0;
    }
    if (!is_signed)
        return kind == DIVIDE ? a / b : a % b;
    if (b == UINT64_MAX) /* by -1, which may not fit */
        return kind == DIVIDE ? -a : 0;
    int64_t dividend = (int64_t)a, divisor = (int64_t)b;
    return (uint64_t)(kind == DIVIDE ? dividend / divisor : dividend % divisor);
}

static bool is_less(uint64_t a, uint64_t b, bool is_signed)
{
    return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t shift_right(uint64_t a, uint64_t by, bool is_signed)
{
    return is_signed ? (uint64_t)((int64_t)a >> (by & 63)) : a >> (by & 63);
}

static struct constant_value of_integers(struct parser *parser, enum operator_kind kind,
                                         struct constant_value a, struct constant_value b)
{
    bool is_signed = a.kind == CONSTANT_SIGNED && b.kind == CONSTANT_SIGNED;
    struct constant_value value = {.kind = is_signed ? CONSTANT_SIGNED : CONSTANT_UNSIGNED};
    switch (kind) {
    case MULTIPLY:
        value.bits = a.bits * b.bits;
        return value;
    case DIVIDE:
    case REMAINDER:
        value.bits = divide(parser, kind, a.bits, b.bits, is_signed);
        return value;
    case ADD:
        value.bits = a.bits + b.bits;
        return value;
    case SUBTRACT:
        value.bits = a.bits - b.bits;
        return value;
    case SHIFT_LEFT:
        return (struct constant_value){a.kind, a.bits << (b.bits & 63)};
    case SHIFT_RIGHT:
        return (struct constant_value){a.kind,
                                       shift_right(a.bits, b.bits, a.kind == CONSTANT_SIGNED)};
    case BIT_AND:
        value.bits = a.bits & b.bits;
        return value;
    case BIT_XOR:
        value.bits = a.bits ^ b.bits;
        return value;
    case BIT_OR:
        value.bits = a.bits | b.bits;
        return value;
    case LESS:
        return of_bool(is_less(a.bits, b.bits, is_signed));
    case GREATER:
        return of_bool(is_less(b.bits, a.bits, is_signed));
    case LESS_EQUAL:
        return of_bool(!is_less(b.bits, a.bits, is_signed));
    case GREATER_EQUAL:
        return of_bool(!is_less(a.bits, b.bits, is_signed));
    case EQUAL:
        return of_bool(a.bits == b.bits);
    case NOT_EQUAL:
        return of_bool(a.bits != b.bits);
    case BOTH:
        return of_bool(a.bits && b.bits);
    case EITHER:
        return of_bool(a.bits || b.bits);
    }
    return value;
}

static struct constant_value apply_operator(struct parser *parser, enum operator_kind kind,
                                            struct constant_value a, struct constant_value b)
{
    if (a.kind == CONSTANT_DOUBLE || b.kind == CONSTANT_DOUBLE)
        return of_doubles(parser, kind, as_double(a), as_double(b));
    return of_integers(parser, kind, need_integer(parser, a), need_integer(parser, b));
}

/* Operators of this rank and those that bind closer, from the left. */
static struct constant_value parse_rank(struct parser *parser, unsigned rank)
{
    struct constant_value value = parse_unary(parser);
    const struct operator* found;
    while ((found = find_operator(&parser->lexer)) != NULL && found->rank <= rank) {
        lexer_next(&parser->lexer);
        value = apply_operator(parser, found->kind, value, parse_rank(parser, found->rank - 1));
    }
    return value;
}

struct constant_value parse_value(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    if (++parser->depth > PTX_MAX_DEPTH)
        lexer_fail(lexer, "an expression is nested too deeply");
    struct constant_value value = parse_rank(parser, LOOSEST);
    if (lexer_accept(lexer, '?')) {
        struct constant_value first = parse_value(parser);
        lexer_expect(lexer, ':');
        struct constant_value second = parse_value(parser);
        value = is_true(value) ? first : second;
    }
    parser->depth--;
    return value;
}

uint64_t parse_count(struct parser *parser)
{
    return need_integer(parser, parse_rank(parser, SHIFTS)).bits;
}

uint64_t parse_constant(struct parser *parser)
{
    return need_integer(parser, parse_value(parser)).bits;
}
