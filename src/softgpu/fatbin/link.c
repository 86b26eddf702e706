/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One module out of several: the first part's header, then a declaration of every function, then
 * the variables, then the bodies. So each name is declared before its use.
 */
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statement.h"

struct linked_statement {
    struct statement statement;
    unsigned part;
    bool is_left_out;
};

struct linking {
    struct linked_statement *statements;
    size_t count;
    const struct linked_statement *
        *privates; /* those whose name means something else in another part */
    size_t private_count;
    FILE *out;
};

static int collect(struct linking *linking, const struct fatbin_part *part, unsigned number)
{
    const char *cursor = part->text, *end = part->text + part->size;
    struct linked_statement linked = {.part = number};

    while (statement_next(&cursor, end, &linked.statement)) {
        struct linked_statement *statements =
            reallocarray(linking->statements, linking->count + 1, sizeof(*linking->statements));

        if (!statements)
            return -ENOMEM;
        statements[linking->count++] = linked;
        linking->statements = statements;
    }
    return 0;
}

/* The device runtime of CUDA 11 and some of CUDA 12 is PTX on system calls of NVIDIA's driver. The
 * software GPU has its own, so that part is left out. */
static bool is_device_runtime(const struct linked_statement *statements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct statement *statement = &statements[i].statement;

        if (statement->has_body && span_is(statement->name, "cudaGetParameterBufferV2"))
            return true;
    }
    return false;
}

static int collect_all(struct linking *linking, const struct fatbin_code *code)
{
    unsigned number = 0;
    int error = 0;

    for (unsigned i = 0; i < code->count && !error; i++) {
        size_t before = linking->count;

        error = collect(linking, &code->parts[i], number);
        if (is_device_runtime(linking->statements + before, linking->count - before))
            linking->count = before;
        else
            number++;
    }
    return error;
}

static bool is_named(const struct statement *statement)
{
    return statement->kind == STATEMENT_FUNCTION || statement->kind == STATEMENT_VARIABLE;
}

static bool is_definition(const struct statement *statement)
{
    return statement->kind == STATEMENT_FUNCTION ? statement->has_body : !statement->is_extern;
}

/* Whether two statements mean the same thing. */
static bool is_same(const struct linked_statement *one, const struct linked_statement *other)
{
    if (one->statement.kind != other->statement.kind ||
        !span_equal(one->statement.name, other->statement.name))
        return false;
    return one->part == other->part ||
           (one->statement.is_shared_name && other->statement.is_shared_name);
}

/* Of those that mean the same, the first definition stays; without one, the first declaration. */
static void leave_out_doubles(struct linking *linking)
{
    for (size_t i = 0; i < linking->count; i++) {
        struct linked_statement *kept = &linking->statements[i];

        for (size_t j = i + 1; j < linking->count && is_named(&kept->statement); j++) {
            struct linked_statement *other = &linking->statements[j];

            if (kept->is_left_out || other->is_left_out || !is_same(kept, other))
                continue;
            if (is_definition(&kept->statement) || !is_definition(&other->statement))
                other->is_left_out = true;
            else
                kept->is_left_out = true;
        }
    }
}

static bool is_private(const struct linking *linking, struct span name, unsigned part)
{
    for (size_t i = 0; i < linking->private_count; i++) {
        const struct linked_statement *linked = linking->privates[i];

        if (linked->part == part && span_equal(linked->statement.name, name))
            return true;
    }
    return false;
}

static bool is_elsewhere(const struct linking *linking, const struct linked_statement *linked)
{
    for (size_t i = 0; i < linking->count; i++) {
        const struct linked_statement *other = &linking->statements[i];

        if (other->part != linked->part && is_named(&other->statement) &&
            span_equal(other->statement.name, linked->statement.name))
            return true;
    }
    return false;
}

/* They are few, and looked through for every word of the text. The others keep their names, by
 * which the program may ask for them. */
static int find_privates(struct linking *linking)
{
    linking->privates = calloc(linking->count + 1, sizeof(*linking->privates));
    if (!linking->privates)
        return -ENOMEM;
    for (size_t i = 0; i < linking->count; i++) {
        const struct statement *statement = &linking->statements[i].statement;

        if (is_named(statement) && !statement->is_shared_name &&
            is_elsewhere(linking, &linking->statements[i]))
            linking->privates[linking->private_count++] = &linking->statements[i];
    }
    return 0;
}

/* Copies a part's text with its private names marked. */
static void put_text(const struct linking *linking, const char *text, size_t size, unsigned part)
{
    const char *cursor = text, *end = text + size, *done = text;
    struct span token;

    while (token_next(&cursor, end, &token)) {
        if (!token_is_name(token) || !is_private(linking, token, part))
            continue;
        fwrite(done, 1, cursor - done, linking->out);
        fprintf(linking->out, "$part%u", part);
        done = cursor;
    }
    fwrite(done, 1, end - done, linking->out);
}

static void put_headers(const struct linking *linking)
{
    for (size_t i = 0; i < linking->count; i++) {
        const struct linked_statement *linked = &linking->statements[i];

        if (linked->part == 0 && linked->statement.kind == STATEMENT_HEADER)
            fprintf(linking->out, "%.*s", (int)linked->statement.text.size,
                    linked->statement.text.text);
    }
}

/* Kernels that launch others name them: those declared by a part are declared ahead of all bodies.
 */
static bool is_declared(const struct linked_statement *linked)
{
    const struct statement *statement = &linked->statement;

    if (statement->kind != STATEMENT_FUNCTION)
        return false;
    return statement->is_kernel ? !statement->has_body : !linked->is_left_out;
}

static void put_declarations(const struct linking *linking)
{
    for (size_t i = 0; i < linking->count; i++) {
        const struct linked_statement *linked = &linking->statements[i];
        const struct statement *statement = &linked->statement;

        if (!is_declared(linked))
            continue;
        put_text(linking, statement->text.text,
                 statement->has_body ? statement->head_size : statement->text.size, linked->part);
        fputs(statement->has_body ? ";\n" : "\n", linking->out);
    }
}

static void put_kind(const struct linking *linking, enum statement_kind kind)
{
    for (size_t i = 0; i < linking->count; i++) {
        const struct linked_statement *linked = &linking->statements[i];
        const struct statement *statement = &linked->statement;

        if (statement->kind != kind || linked->is_left_out)
            continue;
        if (kind == STATEMENT_FUNCTION && !statement->has_body)
            continue;
        put_text(linking, statement->text.text, statement->text.size, linked->part);
        fputc('\n', linking->out);
    }
}

static int put_all(struct linking *linking, struct fatbin_part *ret_part)
{
    struct fatbin_part part = {0};

    linking->out = open_memstream(&part.text, &part.size);
    if (!linking->out)
        return -ENOMEM;
    leave_out_doubles(linking);
    put_headers(linking);
    put_declarations(linking);
    put_kind(linking, STATEMENT_VARIABLE);
    put_kind(linking, STATEMENT_FUNCTION);
    put_kind(linking, STATEMENT_OTHER);
    if (fclose(linking->out)) {
        free(part.text);
        return -ENOMEM;
    }
    *ret_part = part;
    return 0;
}

int fatbin_link(const struct fatbin_code *code, struct fatbin_part *ret_part)
{
    struct linking linking = {0};
    int error = collect_all(&linking, code);

    if (!error)
        error = find_privates(&linking);
    if (!error)
        error = put_all(&linking, ret_part);
    free(linking.privates);
    free(linking.statements);
    return error;
}
