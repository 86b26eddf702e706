/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX text into tokens.
 */
#include "lex.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lexer_fail(struct lexer *lexer, const char *format, ...)
{
    if (lexer->failed)
        return;
    lexer->failed = true;
    lexer->error->line = lexer->token.line;
    va_list args;
    va_start(args, format);
    vsnprintf(lexer->error->text, sizeof(lexer->error->text), format, args);
    va_end(args);
    lexer->token.kind = TOKEN_END;
    lexer->at = lexer->end;
}

void lexer_unsupported(struct lexer *lexer, const char *what)
{
    if (lexer->failed)
        return;
    lexer->error->unsupported = true;
    lexer_fail(lexer, "the software GPU does not run %s", what);
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static char peek(const struct lexer *lexer, size_t ahead)
{
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

static void skip_block_comment(struct lexer *lexer)
{
    while (lexer->at < lexer->end && !(peek(lexer, 0) == '*' && peek(lexer, 1) == '/')) {
        if (*lexer->at++ == '\n')
            lexer->line++;
    }
    if (lexer->at < lexer->end)
        lexer->at += 2;
}

void lexer_skip_line(struct lexer *lexer)
{
    while (lexer->at < lexer->end && *lexer->at != '\n')
        lexer->at++;
    lexer_next(lexer);
}

static void skip_blanks(struct lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '/' && peek(lexer, 1) == '/') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '*') {
            lexer->at += 2;
            skip_block_comment(lexer);
        } else if (isspace((unsigned char)c)) {
            lexer->line += c == '\n';
            lexer->at++;
        } else {
            return;
        }
    }
}

/* A percent sign alone is the operator. */
static bool is_name(const struct lexer *lexer, size_t ahead)
{
    char c = peek(lexer, ahead);
    return c == '%' ? is_name_char(peek(lexer, ahead + 1))
                    : isalpha((unsigned char)c) || c == '_' || c == '$';
}

static void lex_name(struct lexer *lexer)
{
    lexer->token.kind = TOKEN_NAME;
    lexer->at++;
    while (is_name_char(peek(lexer, 0)))
        lexer->at++;
    bool has_part = lexer->token.text[0] == '%' && peek(lexer, 0) == '.' &&
                    strchr("xyzw", peek(lexer, 1)) && peek(lexer, 1) &&
                    !is_name_char(peek(lexer, 2));
    if (has_part)
        lexer->at += 2;
}

static void lex_directive(struct lexer *lexer)
{
    lexer->token.kind = TOKEN_DIRECTIVE;
    lexer->at++;
    lexer->token.text++;
    while (is_name_char(peek(lexer, 0)) || (peek(lexer, 0) == ':' && peek(lexer, 1) == ':') ||
           (peek(lexer, 0) == ':' && lexer->at[-1] == ':'))
        lexer->at++;
}

static void lex_string(struct lexer *lexer)
{
    lexer->token.kind = TOKEN_STRING;
    lexer->token.text = ++lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at += *lexer->at == '\\' && lexer->end - lexer->at > 1 ? 2 : 1;
    if (peek(lexer, 0) != '"') {
        lexer_fail(lexer, "a string does not end");
        return;
    }
    lexer->token.length = (size_t)(lexer->at - lexer->token.text);
    lexer->at++;
}

/* 0f3F800000 and 0d3FF0000000000000 give the bits of a float. */
static void lex_float_bits(struct lexer *lexer, unsigned digits)
{
    char text[17] = "";
    lexer->at += 2;
    for (unsigned i = 0; i < digits; i++) {
        if (!isxdigit((unsigned char)peek(lexer, 0))) {
            lexer_fail(lexer, "a floating-point constant needs %u hexadecimal digits", digits);
            return;
        }
        text[i] = *lexer->at++;
    }
    lexer->token.kind = digits == 8 ? TOKEN_F32 : TOKEN_F64;
    lexer->token.bits = strtoull(text, NULL, 16);
}

static bool looks_decimal_float(const struct lexer *lexer, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = lexer->at[i];
        if (c == '.' || c == 'e' || c == 'E')
            return true;
    }
    return false;
}

static size_t number_length(const struct lexer *lexer)
{
    size_t i = 0;
    for (;; i++) {
        char c = peek(lexer, i);
        bool exponent_sign = (c == '+' || c == '-') && i > 0 &&
                             (peek(lexer, i - 1) == 'e' || peek(lexer, i - 1) == 'E') &&
                             peek(lexer, 1) != 'x' && peek(lexer, 1) != 'X';
        if (!isalnum((unsigned char)c) && c != '.' && !exponent_sign)
            return i;
    }
}

static void lex_plain_number(struct lexer *lexer)
{
    char text[64];
    size_t length = number_length(lexer);
    if (length >= sizeof(text)) {
        lexer_fail(lexer, "a number is too long");
        return;
    }
    memcpy(text, lexer->at, length);
    text[length] = '\0';
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *rest;
    if (!hexadecimal && looks_decimal_float(lexer, length)) {
        double value = strtod(text, &rest);
        lexer->token.kind = TOKEN_F64;
        memcpy(&lexer->token.bits, &value, sizeof(value));
    } else if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
        lexer->token.kind = TOKEN_INTEGER;
        lexer->token.bits = strtoull(text + 2, &rest, 2);
    } else {
        lexer->token.kind = TOKEN_INTEGER;
        lexer->token.bits = strtoull(text, &rest, 0);
    }
    if (*rest == 'U')
        rest++;
    if (*rest) {
        lexer_fail(lexer, "'%s' is not a number", text);
        return;
    }
    lexer->at += length;
}

static void lex_number(struct lexer *lexer)
{
    char second = peek(lexer, 1);
    if (peek(lexer, 0) == '0' && (second == 'f' || second == 'F'))
        lex_float_bits(lexer, 8);
    else if (peek(lexer, 0) == '0' && (second == 'd' || second == 'D'))
        lex_float_bits(lexer, 16);
    else
        lex_plain_number(lexer);
}

static void lex_punctuation(struct lexer *lexer)
{
    char c = *lexer->at++;
    lexer->token.kind = TOKEN_PUNCTUATION;
    lexer->token.punctuation = c;
    bool is_doubled = strchr("<>=&|", c) && peek(lexer, 0) == c;
    bool has_equals = strchr("<>!", c) && peek(lexer, 0) == '=';
    lexer->token.length = is_doubled || has_equals ? 2 : 1;
    lexer->at += lexer->token.length - 1;
}

void lexer_next(struct lexer *lexer)
{
    if (lexer->failed)
        return;
    skip_blanks(lexer);
    lexer->token = (struct token){.text = lexer->at, .line = lexer->line};
    char c = peek(lexer, 0);
    if (lexer->at >= lexer->end)
        return;
    if (is_name(lexer, 0))
        lex_name(lexer);
    else if (c == '.' && is_name(lexer, 1))
        lex_directive(lexer);
    else if (isdigit((unsigned char)c))
        lex_number(lexer);
    else if (c == '"')
        lex_string(lexer);
    else
        lex_punctuation(lexer);
    if (lexer->token.kind != TOKEN_STRING && lexer->token.kind != TOKEN_PUNCTUATION)
        lexer->token.length = (size_t)(lexer->at - lexer->token.text);
}

void lexer_init(struct lexer *lexer, const char *text, size_t size, struct ptx_error *error)
{
    *lexer = (struct lexer){.at = text, .end = text + size, .line = 1, .error = error};
    lexer_next(lexer);
}

void lexer_extend_opcode(struct lexer *lexer)
{
    if (lexer->failed)
        return;
    for (;;) {
        char c = peek(lexer, 0);
        if (is_name_char(c) || c == '.')
            lexer->at++;
        else if (c == ':' && peek(lexer, 1) == ':')
            lexer->at += 2;
        else
            break;
    }
    lexer->token.length = (size_t)(lexer->at - lexer->token.text);
}

bool lexer_is(const struct lexer *lexer, char punctuation)
{
    return lexer->token.kind == TOKEN_PUNCTUATION && lexer->token.length == 1 &&
           lexer->token.punctuation == punctuation;
}

bool lexer_is_directive(const struct lexer *lexer, const char *name)
{
    return lexer->token.kind == TOKEN_DIRECTIVE && lexer->token.length == strlen(name) &&
           memcmp(lexer->token.text, name, lexer->token.length) == 0;
}

bool lexer_accept(struct lexer *lexer, char punctuation)
{
    if (!lexer_is(lexer, punctuation))
        return false;
    lexer_next(lexer);
    return true;
}

bool lexer_accept_directive(struct lexer *lexer, const char *name)
{
    if (!lexer_is_directive(lexer, name))
        return false;
    lexer_next(lexer);
    return true;
}

void lexer_expect(struct lexer *lexer, char punctuation)
{
    if (!lexer_accept(lexer, punctuation))
        lexer_fail(lexer, "expected '%c'", punctuation);
}
