/* SPDX-License-Identifier: Apache-2.0 */
/* See config.h. The walk through the file; config_tables.h knows what it says. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_tables.h"
#include "fd.h"
#include "text.h"
#include "toml.h"

#define FILE_MAX (1u << 20)

/* ---- values ---- */

/* Appends a value, behind a comma if others come before it. */
static int append_value(char value[CONFIG_VALUE_MAX], const struct toml *item, bool first,
                        char *reason)
{
    size_t used = strlen(value);

    if (item->type == TOML_TABLE || item->type == TOML_ARRAY)
        return config_refuse(reason, "an array has to be of values, or of tables");
    if (strlen(item->text) != item->length ||
        !text_format(value + used, CONFIG_VALUE_MAX - used, "%s%s", first ? "" : ",", item->text))
        return config_refuse(reason, "a value is too long, or has a NUL in it");
    return 0;
}

/* Items of an array with commas between them. */
static int value_of(const struct toml *item, char value[CONFIG_VALUE_MAX], char *reason)
{
    int error = 0;

    *value = '\0';
    if (item->type != TOML_ARRAY)
        return append_value(value, item, true, reason);
    for (const struct toml *child = item->first; child && !error; child = child->next)
        error = append_value(value, child, child == item->first, reason);
    return error;
}

/* ---- the tree ---- */

static bool holds_tables(const struct toml *item)
{
    return item->type == TOML_TABLE ||
           (item->type == TOML_ARRAY && item->first && item->first->type == TOML_TABLE);
}

static int fail_at(const struct toml *item, int error, char *reason)
{
    char message[TOML_REASON_MAX];

    text_copy(message, sizeof(message), reason);
    text_format(reason, TOML_REASON_MAX, "line %u: %s", item->line, message);
    return error;
}

static int visit_table(struct config *config, const struct toml *table, struct config_path *path,
                       char *reason);

static int visit_values(struct config *config, const struct toml *table, char *reason)
{
    for (const struct toml *item = table->first; item; item = item->next) {
        char value[CONFIG_VALUE_MAX];
        int error = holds_tables(item) ? 0 : value_of(item, value, reason);

        if (!error && !holds_tables(item))
            error = config_take_value(config, item->key, value, reason);
        if (error)
            return fail_at(item, error, reason);
    }
    return 0;
}

/* The tables of `item`, which is one or an array of them, one level below `path`. */
static int visit_below(struct config *config, const struct toml *item, struct config_path *path,
                       char *reason)
{
    struct config_path below = *path;
    int error = 0;

    if (path->depth == CONFIG_PATH_PARTS)
        return fail_at(item, config_refuse(reason, "there is no table in this table"), reason);
    below.part[below.depth++] = item->key;
    below.element = item->type == TOML_ARRAY;
    if (!below.element)
        return visit_table(config, item, &below, reason);
    for (const struct toml *child = item->first; child && !error; child = child->next)
        error =
            child->type == TOML_TABLE
                ? visit_table(config, child, &below, reason)
                : fail_at(child, config_refuse(reason, "an array has tables and values"), reason);
    return error;
}

/* A table's values come before its tables, wherever they stand. */
static int visit_table(struct config *config, const struct toml *table, struct config_path *path,
                       char *reason)
{
    int error = config_begin_table(config, path, reason);

    if (error)
        return fail_at(table, error, reason);
    error = visit_values(config, table, reason);
    if (!error && config_end_table(config, reason))
        return fail_at(table, -EINVAL, reason);
    for (const struct toml *item = table->first; item && !error; item = item->next)
        if (holds_tables(item))
            error = visit_below(config, item, path, reason);
    return error;
}

/* ---- the file ---- */

/* Allocates the text, which a NUL follows: 0 or -errno. */
static int read_file(const char *path, char **ret_text, size_t *ret_size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : malloc(FILE_MAX + 1);
    ssize_t size = 0, part;

    if (!text)
        return fd < 0 ? -errno : -ENOMEM;
    while ((part = read(fd, text + size, FILE_MAX - (size_t)size)) > 0)
        size += part;
    text[size] = '\0';
    if (part == 0 && size < (ssize_t)FILE_MAX) {
        *ret_text = text;
        *ret_size = (size_t)size;
        return 0;
    }
    free(text);
    return part < 0 ? -errno : -EINVAL;
}

int config_apply(struct daemon *daemon, const char *path, char ret_reason[CONFIG_REASON_MAX])
{
    struct config config = {.daemon = daemon};
    struct config_path top = {.depth = 0};
    char reason[TOML_REASON_MAX] = "", *text = NULL;
    struct toml *root = NULL;
    size_t size = 0;
    int error = read_file(path, &text, &size);

    if (error) {
        text_format(ret_reason, CONFIG_REASON_MAX, "Cannot read %.300s: %s", path,
                    strerror(-error));
        return error;
    }
    error = toml_parse(text, size, &root, reason);
    if (!error)
        error = visit_table(&config, root, &top, reason);
    if (error)
        text_format(ret_reason, CONFIG_REASON_MAX, "%.300s, %s", path, reason);
    toml_free(root);
    free(text);
    return error;
}
