/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement ends with a semicolon, with the brace that closes a body, or, for a few directives,
 * with its line.
 */
#include "statement.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.' || c == '@';
}

bool span_is(struct span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.text, text, span.size) == 0;
}

bool span_equal(struct span one, struct span other)
{
    return one.size == other.size && memcmp(one.text, other.text, one.size) == 0;
}

bool token_is_name(struct span token)
{
    return isalpha((unsigned char)token.text[0]) || token.text[0] == '_' || token.text[0] == '$' ||
           (token.text[0] == '%' && token.size > 1);
}

static const char *skip_line(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', end - at);

    return newline ? newline + 1 : end;
}

static const char *skip_comment(const char *at, const char *end)
{
    const char *close = memmem(at + 2, end - at - 2, "*/", 2);

    return close ? close + 2 : end;
}

static const char *skip_blank(const char *at, const char *end)
{
    while (at < end) {
        if (isspace((unsigned char)*at))
            at++;
        else if (end - at >= 2 && at[0] == '/' && at[1] == '/')
            at = skip_line(at, end);
        else if (end - at >= 2 && at[0] == '/' && at[1] == '*')
            at = skip_comment(at, end);
        else
            break;
    }
    return at;
}

static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
    }
    return at < end ? at + 1 : end;
}

bool token_next(const char **cursor, const char *end, struct span *ret_token)
{
    const char *start = skip_blank(*cursor, end), *at = start;

    if (start == end)
        return false;
    if (*at == '"')
        at = skip_string(at, end);
    else if (is_word(*at))
        while (at < end && is_word(*at))
            at++;
    else
        at++;
    *ret_token = (struct span){start, at - start};
    *cursor = at;
    return true;
}

static bool ends_with_line(struct span token, enum statement_kind *ret_kind)
{
    bool header =
        span_is(token, ".version") || span_is(token, ".target") || span_is(token, ".address_size");

    *ret_kind = header ? STATEMENT_HEADER : STATEMENT_DROPPED;
    return header || span_is(token, ".file") || span_is(token, ".loc");
}

/* Takes down what a token outside all brackets says of its statement. */
static void read_token(struct statement *statement, struct span token)
{
    if (span_is(token, ".func") || span_is(token, ".entry"))
        statement->kind = STATEMENT_FUNCTION;
    else if (span_is(token, ".global") || span_is(token, ".const") || span_is(token, ".shared"))
        statement->kind = STATEMENT_VARIABLE;
    else if (span_is(token, ".section"))
        statement->kind = STATEMENT_DROPPED;
    if (span_is(token, ".entry"))
        statement->is_kernel = true;
    if (span_is(token, ".extern"))
        statement->is_extern = true;
    if (span_is(token, ".extern") || span_is(token, ".visible") || span_is(token, ".weak") ||
        span_is(token, ".common"))
        statement->is_shared_name = true;
    if (!statement->name.size && token_is_name(token))
        statement->name = token;
}

static int depth_change(char c)
{
    if (c == '(' || c == '[' || c == '{')
        return 1;
    return c == ')' || c == ']' || c == '}' ? -1 : 0;
}

/* From the second token on: to the end of the statement. */
static void statement_finish(const char **cursor, const char *end, struct statement *statement)
{
    struct span token;
    bool has_value = false;
    int depth = 0;

    while (token_next(cursor, end, &token)) {
        char c = token.size == 1 ? token.text[0] : '\0';

        if (depth == 0 && c == '{' && !has_value) {
            statement->has_body = true;
            statement->head_size = token.text - statement->text.text;
        }
        depth += depth_change(c);
        if (depth == 0 && (c == ';' || (c == '}' && !has_value)))
            return;
        if (depth == 0 && c == '=')
            has_value = true;
        if (depth == 0 && !has_value)
            read_token(statement, token);
    }
}

bool statement_next(const char **cursor, const char *end, struct statement *ret_statement)
{
    struct statement statement = {.kind = STATEMENT_OTHER};
    struct span token;

    if (!token_next(cursor, end, &token))
        return false;
    statement.text.text = token.text;
    if (ends_with_line(token, &statement.kind)) {
        *cursor = skip_line(*cursor, end);
    } else {
        statement.kind = STATEMENT_OTHER;
        read_token(&statement, token);
        statement_finish(cursor, end, &statement);
    }
    statement.text.size = *cursor - statement.text.text;
    *ret_statement = statement;
    return true;
}
