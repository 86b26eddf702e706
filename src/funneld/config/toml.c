/* SPDX-License-Identifier: Apache-2.0 */
/* See toml.h. One pass over the text; every step returns 0 or -EINVAL with its reason. */
#include "toml.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

struct reader {
    const char *at;
    unsigned line;
    struct toml_path table;
    bool element;
    char **seen; /* tables and keys: none comes twice */
    unsigned seen_count;
    unsigned elements; /* arrays of tables so far: their keys may come again */
    char *reason;
};

static int fail(struct reader *reader, const char *message, const char *detail)
{
    text_format(reader->reason, TOML_REASON_MAX, "line %u: %s%.200s", reader->line, message,
                detail);
    return -EINVAL;
}

/* ---- blanks ---- */

static void skip_blanks(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t");
}

/* Blanks, comments and ends of lines. */
static void skip_lines(struct reader *reader)
{
    for (;; reader->at++) {
        skip_blanks(reader);
        if (*reader->at == '#')
            reader->at += strcspn(reader->at, "\n");
        if (*reader->at == '\n')
            reader->line++;
        else if (*reader->at != '\r')
            return;
    }
}

static int end_line(struct reader *reader)
{
    skip_blanks(reader);
    if (*reader->at && !strchr("#\r\n", *reader->at))
        return fail(reader, "unexpected text behind a table or value: ", reader->at);
    return 0;
}

/* ---- words ---- */

static int append(struct reader *reader, char *word, size_t capacity, char letter)
{
    size_t length = strlen(word);

    if (length + 1 >= capacity)
        return fail(reader, "too long a word: ", word);
    word[length] = letter;
    word[length + 1] = '\0';
    return 0;
}

/* "..." with \" and \\, or '...'; appended to `word`. */
static int read_string(struct reader *reader, char *word, size_t capacity)
{
    char quote = *reader->at++;
    int error = 0;

    for (; !error && *reader->at != quote; reader->at++) {
        if (!*reader->at || *reader->at == '\n')
            return fail(reader, "a string has no end", "");
        if (quote == '"' && *reader->at == '\\') {
            if (reader->at[1] != '"' && reader->at[1] != '\\')
                return fail(reader, "the only escapes in strings are \\\" and \\\\", "");
            reader->at++;
        }
        error = append(reader, word, capacity, *reader->at);
    }
    reader->at += !error;
    return error;
}

static int read_bare(struct reader *reader, const char *more, char *word, size_t capacity)
{
    size_t start = strlen(word);
    int error = 0;

    while (!error && *reader->at &&
           (isalnum((unsigned char)*reader->at) || strchr(more, *reader->at)))
        error = append(reader, word, capacity, *reader->at++);
    if (!error && !word[start])
        return fail(reader, "a name or value is missing", "");
    return error;
}

static int read_word(struct reader *reader, const char *more, char *word, size_t capacity)
{
    return *reader->at == '"' || *reader->at == '\'' ? read_string(reader, word, capacity)
                                                     : read_bare(reader, more, word, capacity);
}

/* ---- values ---- */

static bool is_number_or_boolean(const char *text)
{
    char *end;

    if (!strcmp(text, "true") || !strcmp(text, "false"))
        return true;
    strtod(text, &end);
    return *text != '\0' && !*end && strspn(text, "+-.0123456789eE") == strlen(text);
}

static int read_scalar(struct reader *reader, char value[TOML_VALUE_MAX])
{
    bool quoted = *reader->at == '"' || *reader->at == '\'';
    size_t start = strlen(value);
    int error = read_word(reader, "+-._", value, TOML_VALUE_MAX);

    if (!error && !quoted && !is_number_or_boolean(value + start))
        return fail(reader,
                    "neither a number nor true or false, and not in quotes: ", value + start);
    return error;
}

/* [a, b,] over any number of lines. */
static int read_array(struct reader *reader, char value[TOML_VALUE_MAX])
{
    int error = 0;

    reader->at++;
    for (skip_lines(reader); !error && *reader->at != ']'; skip_lines(reader)) {
        if (*value)
            error = append(reader, value, TOML_VALUE_MAX, ',');
        if (!error)
            error = read_scalar(reader, value);
        skip_lines(reader);
        if (!error && *reader->at != ',' && *reader->at != ']')
            return fail(reader, "a comma or ] is missing in an array", "");
        reader->at += !error && *reader->at == ',';
    }
    reader->at += !error;
    return error;
}

/* ---- tables and keys ---- */

static int remember(struct reader *reader, const char *key)
{
    char name[TOML_DEPTH_MAX * TOML_WORD_MAX + TOML_WORD_MAX];
    char **grown;

    text_format(name, sizeof(name), "%u", reader->element ? reader->elements : 0);
    for (unsigned i = 0; i < reader->table.depth; i++)
        text_format(name + strlen(name), sizeof(name) - strlen(name), ".%s", reader->table.part[i]);
    text_format(name + strlen(name), sizeof(name) - strlen(name), "=%s", key);
    for (unsigned i = 0; i < reader->seen_count; i++)
        if (!strcmp(reader->seen[i], name))
            return fail(reader, "a table or key comes twice: ",
                        *key ? key : reader->table.part[reader->table.depth - 1]);
    grown = reallocarray(reader->seen, reader->seen_count + 1, sizeof(*grown));
    if (grown)
        reader->seen = grown;
    if (!grown || !(grown[reader->seen_count] = strdup(name)))
        return fail(reader, "out of memory", "");
    reader->seen_count++;
    return 0;
}

static int read_path(struct reader *reader)
{
    int error = 0;

    memset(&reader->table, 0, sizeof(reader->table));
    do {
        if (reader->table.depth == TOML_DEPTH_MAX)
            return fail(reader, "too many names in a table", "");
        skip_blanks(reader);
        error = read_word(reader, "_-", reader->table.part[reader->table.depth++], TOML_WORD_MAX);
        skip_blanks(reader);
    } while (!error && *reader->at == '.' && reader->at++);
    return error;
}

static int read_table(struct reader *reader)
{
    int error;

    reader->element = reader->at[1] == '[';
    reader->elements += reader->element;
    reader->at += 1 + reader->element;
    error = read_path(reader);
    if (!error && (reader->at[0] != ']' || (reader->element && reader->at[1] != ']')))
        return fail(reader, "the ] of a table is missing", "");
    if (error)
        return error;
    reader->at += 1 + reader->element;
    return remember(reader, "");
}

static int read_key(struct reader *reader, char key[TOML_WORD_MAX], char value[TOML_VALUE_MAX])
{
    int error = read_word(reader, "_-", key, TOML_WORD_MAX);

    if (error)
        return error;
    skip_blanks(reader);
    if (*reader->at != '=')
        return fail(reader, "= is missing behind ", key);
    reader->at++;
    skip_blanks(reader);
    error = *reader->at == '[' ? read_array(reader, value) : read_scalar(reader, value);
    return error ? error : remember(reader, key);
}

static int read_item(struct reader *reader, toml_taker *take, void *context)
{
    char key[TOML_WORD_MAX] = "", value[TOML_VALUE_MAX] = "", reason[TOML_REASON_MAX] = "";
    bool is_table = *reader->at == '[';
    unsigned line = reader->line;
    int error = is_table ? read_table(reader) : read_key(reader, key, value);
    struct toml_item item = {&reader->table, reader->element, is_table ? NULL : key, value};

    if (!error)
        error = end_line(reader);
    if (!error && take(context, &item, reason)) {
        reader->line = line;
        return fail(reader, reason, "");
    }
    return error;
}

int toml_read(const char *text, toml_taker *take, void *context, char ret_reason[TOML_REASON_MAX])
{
    struct reader reader = {.at = text, .line = 1, .reason = ret_reason};
    int error = 0;

    for (skip_lines(&reader); !error && *reader.at; skip_lines(&reader))
        error = read_item(&reader, take, context);
    for (unsigned i = 0; i < reader.seen_count; i++)
        free(reader.seen[i]);
    free(reader.seen);
    return error;
}
