/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the TOML of standard input as JSON with types, as the test suite toml-test wants it:
 *
 *     toml-test -decoder build/tests/unit/funneld/toml_json
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "toml.h"

#define INPUT_MAX (1u << 20)

static void print_string(const char *text, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        unsigned char letter = (unsigned char)text[i];

        if (letter < ' ' || letter == '"' || letter == '\\' || letter == 0x7f)
            printf("\\u%04x", letter);
        else
            putchar(letter);
    }
    putchar('"');
}

static void print_value(const struct toml *value);

static void print_children(const struct toml *parent)
{
    for (const struct toml *child = parent->first; child; child = child->next) {
        if (child != parent->first)
            putchar(',');
        if (child->key) {
            print_string(child->key, child->key_length);
            putchar(':');
        }
        print_value(child);
    }
}

static void print_value(const struct toml *value)
{
    static const char *const types[] = {
        [TOML_STRING] = "string",         [TOML_INTEGER] = "integer",
        [TOML_FLOAT] = "float",           [TOML_BOOLEAN] = "bool",
        [TOML_DATE_TIME] = "datetime",    [TOML_LOCAL_DATE_TIME] = "datetime-local",
        [TOML_LOCAL_DATE] = "date-local", [TOML_LOCAL_TIME] = "time-local",
    };

    if (value->type == TOML_TABLE || value->type == TOML_ARRAY) {
        putchar(value->type == TOML_TABLE ? '{' : '[');
        print_children(value);
        putchar(value->type == TOML_TABLE ? '}' : ']');
        return;
    }
    printf("{\"type\":\"%s\",\"value\":", types[value->type]);
    print_string(value->text, value->length);
    putchar('}');
}

int main(void)
{
    char *text = calloc(1, INPUT_MAX + 1), reason[TOML_REASON_MAX] = "";
    struct toml *root = NULL;
    size_t size = 0;
    ssize_t part;

    while (text && size < INPUT_MAX &&
           (part = read(STDIN_FILENO, text + size, INPUT_MAX - size)) > 0)
        size += (size_t)part;
    if (!text || toml_parse(text, size, &root, reason)) {
        fprintf(stderr, "%s\n", reason);
        free(text);
        return 1;
    }
    print_value(root);
    putchar('\n');
    toml_free(root);
    free(text);
    return 0;
}
