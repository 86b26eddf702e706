/* SPDX-License-Identifier: Apache-2.0 */
/* See config.h. A key is read as the option of `server create` or `server set` of that name is. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "service.h"
#include "text.h"
#include "toml.h"

#define FILE_MAX (1u << 20)

#define LIMITS                                                           \
    "[--pinned-memory-limit=SIZE] [--active-thread-percentage=PERCENT] " \
    "[--client-priority=PRIORITY]"
#define SERVER "[--uid=UID] [--allowed-devices=DEVICES] [--locality-domains=BOOLEAN] " LIMITS

struct config {
    struct daemon *daemon;
    struct service *service;     /* the table that is being read is about ... */
    struct mps_namespace *space; /* ... this namespace, the default one for the server itself */
    bool whole;                  /* it is the server's own table */
};

/* ---- tables ---- */

static bool is_called(const struct toml_path *table, unsigned place, const char *name)
{
    return place < table->depth && !strcmp(table->part[place], name);
}

/* The owner is the daemon's user until `uid` says otherwise; that of uid_N is in its name. */
static uid_t first_owner(const struct daemon *daemon, const char *name)
{
    uint64_t uid;

    if (!text_starts_with(name, "uid_") || text_to_u64(name + strlen("uid_"), &uid) ||
        uid >= UINT32_MAX)
        return daemon->uid;
    return (uid_t)uid;
}

static int begin_server(struct config *config, const char *name, char *reason)
{
    struct daemon *daemon = config->daemon;

    config->service = service_find(daemon, name);
    if (config->service)
        return 0;
    if (!*name) {
        text_copy(reason, TOML_REASON_MAX, "a server has no name");
        return -EINVAL;
    }
    return service_create(daemon, name, first_owner(daemon, name), "", &config->service, reason);
}

static int begin_namespace(struct config *config, const char *name, char *reason)
{
    int error = 0;

    if (!service_namespace(config->service, name))
        error = namespace_create(config->service, name, reason);
    if (!error)
        config->space = service_namespace(config->service, name);
    return error;
}

static int refuse_table(const struct toml_path *table, char *reason)
{
    if (is_called(table, 0, "features"))
        text_copy(reason, TOML_REASON_MAX, "features are not supported");
    else if (is_called(table, 2, "devices"))
        text_copy(reason, TOML_REASON_MAX, "SM partitions of a server are not supported");
    else
        text_format(reason, TOML_REASON_MAX,
                    "a table [%.100s...] is not known: [servers.NAME] and "
                    "[servers.NAME.namespaces.NAME] are",
                    table->part[0]);
    return -EINVAL;
}

static int begin_table(struct config *config, const struct toml_item *item, char *reason)
{
    const struct toml_path *table = item->table;
    bool is_space = table->depth == 4 && is_called(table, 2, "namespaces");
    int error;

    config->service = NULL;
    config->whole = table->depth == 2;
    if (item->element || !is_called(table, 0, "servers") || !(config->whole || is_space))
        return refuse_table(table, reason);
    error = begin_server(config, table->part[1], reason);
    return error ? error
                 : begin_namespace(config, is_space ? table->part[3] : NAMESPACE_DEFAULT, reason);
}

/* ---- keys ---- */

/* The option's name has - where the key has _. */
static int parse_key(const char *grammar, const struct toml_item *item,
                     struct grammar_values *values, char *reason)
{
    char word[TOML_WORD_MAX + TOML_VALUE_MAX], option[TOML_WORD_MAX];
    char *words[] = {word};

    text_copy(option, sizeof(option), item->key);
    for (char *letter = option; *letter; letter++)
        *letter = *letter == '_' ? '-' : *letter;
    text_format(word, sizeof(word), "--%s=", option);
    if (strchr(item->key, '-') || !strstr(grammar, word)) {
        text_format(reason, TOML_REASON_MAX, "there is no key '%.100s' in this table", item->key);
        return -EINVAL;
    }
    text_format(word, sizeof(word), "--%s=%s", option, item->value);
    return grammar_parse("", grammar, words, 1, values, reason);
}

static int apply(struct config *config, const struct grammar_values *values, char *reason)
{
    struct service *service = config->service;

    if (grammar_given(values, GRAMMAR_BOOLEAN) && values->yes) {
        text_copy(reason, TOML_REASON_MAX, "locality domains are not supported");
        return -EINVAL;
    }
    if (grammar_given(values, GRAMMAR_DEVICES))
        text_copy(service->devices, sizeof(service->devices), values->devices);
    namespace_set(config->space, values);
    return grammar_given(values, GRAMMAR_UID) ? service_set_owner(service, values->uid, reason) : 0;
}

static int take_top_key(const struct toml_item *item, char *reason)
{
    if (!strcmp(item->key, "schema_version") && !strcmp(item->value, "1.0"))
        return 0;
    text_format(reason, TOML_REASON_MAX,
                "%.100s is not known outside of tables; schema_version = \"1.0\" is", item->key);
    return -EINVAL;
}

static int take(void *context, const struct toml_item *item, char reason[TOML_REASON_MAX])
{
    struct config *config = context;
    struct grammar_values values;
    int error;

    if (!item->key)
        return begin_table(config, item, reason);
    if (!config->service)
        return take_top_key(item, reason);
    error = parse_key(config->whole ? SERVER : LIMITS, item, &values, reason);
    return error ? error : apply(config, &values, reason);
}

/* ---- the file ---- */

/* Allocates the text: 0 or -errno. */
static int read_file(const char *path, char **ret_text)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : malloc(FILE_MAX + 1);
    ssize_t size = 0, part;

    if (!text)
        return fd < 0 ? -errno : -ENOMEM;
    while ((part = read(fd, text + size, FILE_MAX - (size_t)size)) > 0)
        size += part;
    text[size] = '\0';
    if (part == 0 && size < (ssize_t)FILE_MAX && strlen(text) == (size_t)size) {
        *ret_text = text;
        return 0;
    }
    free(text);
    return part < 0 ? -errno : -EINVAL;
}

int config_apply(struct daemon *daemon, const char *path, char ret_reason[CONFIG_REASON_MAX])
{
    struct config config = {.daemon = daemon};
    char reason[TOML_REASON_MAX], *text = NULL;
    int error = read_file(path, &text);

    if (error) {
        text_format(ret_reason, CONFIG_REASON_MAX, "Cannot read %.300s: %s", path,
                    strerror(-error));
        return error;
    }
    error = toml_read(text, take, &config, reason);
    if (error)
        text_format(ret_reason, CONFIG_REASON_MAX, "%.300s, %s", path, reason);
    free(text);
    return error;
}
