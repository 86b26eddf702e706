/* SPDX-License-Identifier: Apache-2.0 */
/* See toml.h: tables, keys and arrays. */
#include "toml.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "toml_reader.h"
#include "toml_string.h"

int toml_fail(struct toml_reader *reader, const char *format, ...)
{
    char message[TOML_REASON_MAX - 32];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    text_format(reader->reason, TOML_REASON_MAX, "line %u: %s", reader->line, message);
    return -EINVAL;
}

/* ---- the tree ---- */

void toml_free(struct toml *tree)
{
    while (tree) {
        struct toml *next = tree->next;

        toml_free(tree->first);
        free(tree->key);
        free(tree->text);
        free(tree);
        tree = next;
    }
}

struct toml *toml_find(const struct toml *table, const char *key, size_t length)
{
    for (struct toml *child = table->first; child; child = child->next)
        if (child->key_length == length && !memcmp(child->key, key, length))
            return child;
    return NULL;
}

/* Appends a child, which takes `key` (NULL in arrays) also when there is no memory. */
static struct toml *add_value(struct toml_reader *reader, struct toml *parent,
                              struct toml_buffer *key, enum toml_type type, enum toml_origin origin)
{
    struct toml *child = calloc(1, sizeof(*child));

    if (!child) {
        toml_fail(reader, "out of memory");
        if (key)
            free(key->text);
        return NULL;
    }
    child->key = key ? key->text : NULL;
    child->key_length = key ? key->length : 0;
    child->type = type;
    child->origin = origin;
    child->line = reader->line;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    return child;
}

static int fail_twice(struct toml_reader *reader, const struct toml *there)
{
    return toml_fail(reader, "a table or key comes twice: %.200s (first in line %u)",
                     there->key ? there->key : "", there->line);
}

/* ---- blanks ---- */

static void skip_blanks(struct toml_reader *reader)
{
    reader->at += strspn(reader->at, " \t");
}

static void skip_comment(struct toml_reader *reader)
{
    if (*reader->at == '#')
        reader->at += strcspn(reader->at, "\n");
}

/* Blanks, comments and ends of lines. */
static void skip_lines(struct toml_reader *reader)
{
    for (;; reader->at++) {
        skip_blanks(reader);
        skip_comment(reader);
        if (*reader->at == '\n')
            reader->line++;
        else if (*reader->at != '\r')
            return;
    }
}

static int end_line(struct toml_reader *reader)
{
    skip_blanks(reader);
    skip_comment(reader);
    if (*reader->at == '\r')
        reader->at++;
    if (reader->at < reader->end && *reader->at != '\n')
        return toml_fail(reader, "unexpected text behind a table or value: %.100s", reader->at);
    return 0;
}

/* ---- keys ---- */

static int read_bare_key(struct toml_reader *reader, struct toml_buffer *ret_key)
{
    const char *start = reader->at;

    while (isalnum((unsigned char)*reader->at) || *reader->at == '_' || *reader->at == '-')
        reader->at++;
    if (reader->at == start)
        return toml_fail(reader, "a name is missing, or has letters that need quotes");
    return toml_append(reader, ret_key, start, (size_t)(reader->at - start));
}

/* One part of a key, and whether another one follows behind a dot. */
static int read_key_part(struct toml_reader *reader, struct toml_buffer *ret_key, bool *ret_more)
{
    int error;

    skip_blanks(reader);
    error = *reader->at == '"' || *reader->at == '\'' ? toml_read_string(reader, true, ret_key)
                                                      : read_bare_key(reader, ret_key);
    skip_blanks(reader);
    *ret_more = !error && *reader->at == '.';
    reader->at += *ret_more;
    if (error)
        free(ret_key->text);
    return error;
}

/* ---- values ---- */

static int read_value(struct toml_reader *reader, struct toml *parent, struct toml_buffer *key);
static int read_pair(struct toml_reader *reader, struct toml *table);

static int expect(struct toml_reader *reader, char letter, const char *message)
{
    if (*reader->at != letter)
        return toml_fail(reader, "%s", message);
    reader->at++;
    return 0;
}

/* [a, b,] over any number of lines. */
static int read_array(struct toml_reader *reader, struct toml *array)
{
    int error = 0;

    reader->at++;
    for (skip_lines(reader); !error && *reader->at != ']'; skip_lines(reader)) {
        error = read_value(reader, array, NULL);
        skip_lines(reader);
        if (!error && *reader->at != ']')
            error = expect(reader, ',', "a comma or ] is missing in an array");
    }
    reader->at += !error;
    return error;
}

/* Tables that dotted keys have made in it are as complete as it is. */
static void close_table(struct toml *table)
{
    for (struct toml *child = table->first; child; child = child->next)
        if (child->type == TOML_TABLE)
            close_table(child);
    table->origin = TOML_CLOSED;
}

/* {a = 1, b.c = 2} on one line. */
static int read_inline_table(struct toml_reader *reader, struct toml *table)
{
    bool more;
    int error = 0;

    table->origin = TOML_DOTTED; /* until it is complete */
    reader->at++;
    skip_blanks(reader);
    for (more = *reader->at != '}'; !error && more;) {
        error = read_pair(reader, table);
        skip_blanks(reader);
        more = *reader->at == ',';
        reader->at += more;
    }
    if (!error)
        error = expect(reader, '}', "a comma or } is missing in a table {...}");
    close_table(table);
    return error;
}

static int read_string_value(struct toml_reader *reader, struct toml *value)
{
    struct toml_buffer text = {.text = NULL};
    int error = toml_read_string(reader, false, &text);

    value->text = text.text;
    value->length = text.length;
    return error;
}

/* A blank between date and time belongs to the value. */
static size_t scalar_length(const char *at)
{
    size_t length = strcspn(at, ",]}#\r\n\t ");

    if (length == 10 && at[4] == '-' && at[10] == ' ' && isdigit((unsigned char)at[11]))
        length += 1 + strcspn(at + 11, ",]}#\r\n\t ");
    return length;
}

static int read_scalar_value(struct toml_reader *reader, struct toml *value)
{
    struct toml_buffer text = {.text = NULL};
    size_t length = scalar_length(reader->at);
    int error = toml_read_scalar(reader, reader->at, length, &value->type, &text);

    value->text = text.text;
    value->length = text.length;
    reader->at += length;
    return error;
}

static int read_nested(struct toml_reader *reader, struct toml *value)
{
    int error;

    if (reader->depth == TOML_DEPTH_MAX)
        return toml_fail(reader, "arrays or tables are nested too deeply");
    reader->depth++;
    error =
        value->type == TOML_ARRAY ? read_array(reader, value) : read_inline_table(reader, value);
    reader->depth--;
    return error;
}

/* Takes `key`, which is NULL in arrays. */
static int read_value(struct toml_reader *reader, struct toml *parent, struct toml_buffer *key)
{
    char letter = *reader->at;
    enum toml_type type = letter == '[' ? TOML_ARRAY : letter == '{' ? TOML_TABLE : TOML_STRING;
    struct toml *value = add_value(reader, parent, key, type, TOML_CLOSED);

    if (!value)
        return -ENOMEM;
    if (type != TOML_STRING)
        return read_nested(reader, value);
    return letter == '"' || letter == '\'' ? read_string_value(reader, value)
                                           : read_scalar_value(reader, value);
}

/* ---- pairs ---- */

/* The table that the next part of a dotted key is in. Takes `part`. */
static int enter_dotted(struct toml_reader *reader, struct toml **table, struct toml_buffer *part)
{
    struct toml *there = toml_find(*table, part->text, part->length);

    if (there) {
        free(part->text);
        *table = there;
        return there->type == TOML_TABLE && there->origin == TOML_DOTTED
                   ? 0
                   : fail_twice(reader, there);
    }
    *table = add_value(reader, *table, part, TOML_TABLE, TOML_DOTTED);
    return *table ? 0 : -ENOMEM;
}

/* a.b = value. */
static int read_pair(struct toml_reader *reader, struct toml *table)
{
    struct toml_buffer part = {.text = NULL};
    struct toml *there;
    bool more;
    int error = read_key_part(reader, &part, &more);

    while (!error && more) {
        error = enter_dotted(reader, &table, &part);
        part = (struct toml_buffer){.text = NULL};
        if (!error)
            error = read_key_part(reader, &part, &more);
    }
    if (error)
        return error;
    there = toml_find(table, part.text, part.length);
    error = there                ? fail_twice(reader, there)
            : *reader->at != '=' ? toml_fail(reader, "= is missing behind %.200s", part.text)
                                 : 0;
    if (error) {
        free(part.text);
        return error;
    }
    reader->at++;
    skip_blanks(reader);
    return read_value(reader, table, &part);
}

/* ---- headers ---- */

/* The table on the way to that of a header: of an array of tables its last element. Takes `part`.
 */
static int enter_table(struct toml_reader *reader, struct toml **table, struct toml_buffer *part)
{
    struct toml *there = toml_find(*table, part->text, part->length);

    if (!there) {
        *table = add_value(reader, *table, part, TOML_TABLE, TOML_IMPLIED);
        return *table ? 0 : -ENOMEM;
    }
    free(part->text);
    if (there->origin == TOML_CLOSED)
        return fail_twice(reader, there);
    *table = there->type == TOML_ARRAY ? there->last : there;
    return 0;
}

/* [name]. Takes `name`. */
static int begin_table(struct toml_reader *reader, struct toml **table, struct toml_buffer *name)
{
    struct toml *there = toml_find(*table, name->text, name->length);

    if (!there) {
        *table = add_value(reader, *table, name, TOML_TABLE, TOML_BY_HEADER);
        return *table ? 0 : -ENOMEM;
    }
    free(name->text);
    if (there->type != TOML_TABLE || there->origin != TOML_IMPLIED)
        return fail_twice(reader, there);
    there->origin = TOML_BY_HEADER;
    there->line = reader->line;
    *table = there;
    return 0;
}

/* [[name]]. Takes `name`. */
static int begin_element(struct toml_reader *reader, struct toml **table, struct toml_buffer *name)
{
    struct toml *array = toml_find(*table, name->text, name->length);

    if (array)
        free(name->text);
    if (array && (array->type != TOML_ARRAY || array->origin == TOML_CLOSED))
        return fail_twice(reader, array);
    if (!array)
        array = add_value(reader, *table, name, TOML_ARRAY, TOML_BY_HEADER);
    *table = array ? add_value(reader, array, NULL, TOML_TABLE, TOML_BY_HEADER) : NULL;
    return *table ? 0 : -ENOMEM;
}

static int read_header(struct toml_reader *reader, struct toml *root, struct toml **ret_table)
{
    bool element = reader->at[1] == '[', more = true;
    struct toml_buffer part = {.text = NULL};
    struct toml *table = root;
    int error;

    reader->at += 1 + element;
    error = read_key_part(reader, &part, &more);
    while (!error && more) {
        error = enter_table(reader, &table, &part);
        part = (struct toml_buffer){.text = NULL};
        if (!error)
            error = read_key_part(reader, &part, &more);
    }
    if (error)
        return error;
    error = element ? begin_element(reader, &table, &part) : begin_table(reader, &table, &part);
    if (!error && (reader->at[0] != ']' || (element && reader->at[1] != ']')))
        return toml_fail(reader, "the ] of a table is missing");
    reader->at += 1 + element;
    *ret_table = table;
    return error;
}

/* ---- the file ---- */

static int read_lines(struct toml_reader *reader, struct toml *root)
{
    struct toml *table = root;
    int error = 0;

    for (skip_lines(reader); !error && reader->at < reader->end; skip_lines(reader)) {
        error = *reader->at == '[' ? read_header(reader, root, &table) : read_pair(reader, table);
        if (!error)
            error = end_line(reader);
        if (error)
            return error;
    }
    return error;
}

int toml_parse(const char *text, size_t size, struct toml **ret_root,
               char ret_reason[TOML_REASON_MAX])
{
    struct toml_reader reader = {text, text + size, 1, 0, ret_reason};
    struct toml *root = calloc(1, sizeof(*root));
    int error = root ? toml_check_text(&reader, text, size) : -ENOMEM;

    if (!error && text_starts_with(text, "\xef\xbb\xbf"))
        reader.at += 3;
    if (!error)
        error = read_lines(&reader, root);
    if (error)
        toml_free(root);
    else
        *ret_root = root;
    return error;
}
