/* SPDX-License-Identifier: Apache-2.0 */
/* See config_tables.h. */
#include "config_tables.h"

#include <errno.h>
#include <string.h>

#include "journal.h"
#include "service.h"
#include "text.h"
#include "timeslice.h"
#include "user_name.h"

#define KEY_MAX 128

#define LIMITS                                                         \
    "[--pinned-memory-limit=SIZE] [--active-thread-percentage=SHARE] " \
    "[--client-priority=PRIORITY] [--show-limit=SHOWN] [--lend=LENT] " \
    "[--class=CLASS] " RULE_OVERSUBSCRIBE
#define RULE_OVERSUBSCRIBE "[--oversubscribe=OVERSUBSCRIBED] [--evict-after=IDLE]"
#define RULE "[--class=CLASS] [--joint-memory=JOINT] " RULE_OVERSUBSCRIBE
#define SERVER                                                              \
    "[--uid=UID] [--allowed-devices=DEVICES] [--locality-domains=BOOLEAN] " \
    "[--timeslice-pct=TIMESLICE] [--isolate=ISOLATION] " LIMITS
#define NAMESPACE LIMITS " [--cgroup=CGROUP] [--cgroup-depth=LEVELS]"

/* Tables of one kind. A name of "*" is any. */
struct config_kind {
    const char *path[CONFIG_PATH_PARTS];
    bool element;
    const char *grammar;
    int (*begin)(struct config *config, const struct config_path *table, char *reason);
    int (*apply)(struct config *config, const char *key, const struct grammar_values *values,
                 char *reason);
};

int config_refuse(char *reason, const char *message)
{
    text_copy(reason, TOML_REASON_MAX, message);
    return -EINVAL;
}

/* ---- servers and namespaces ---- */

/* The owner is the servers' user until `uid` says otherwise; that of uid_N is in its name. */
static uid_t first_owner(const struct daemon *daemon, const char *name)
{
    uint64_t uid;

    if (!text_starts_with(name, "uid_") || text_to_u64(name + strlen("uid_"), &uid) ||
        uid >= UINT32_MAX)
        return daemon->server_uid;
    return (uid_t)uid;
}

static int begin_namespace_of(struct config *config, const char *name, char *reason)
{
    int error = 0;

    if (!service_namespace(config->service, name))
        error = namespace_create(config->service, name, reason);
    if (!error)
        config->space = service_namespace(config->service, name);
    return error;
}

static int begin_server(struct config *config, const struct config_path *table, char *reason)
{
    struct daemon *daemon = config->daemon;
    const char *name = table->part[1];
    int error = 0;

    if (!*name)
        return config_refuse(reason, "a server has no name");
    config->service = service_find(daemon, name);
    if (!config->service)
        error =
            service_create(daemon, name, first_owner(daemon, name), "", &config->service, reason);
    return error ? error : begin_namespace_of(config, NAMESPACE_DEFAULT, reason);
}

static int begin_namespace(struct config *config, const struct config_path *table, char *reason)
{
    int error = begin_server(config, table, reason);

    return error ? error : begin_namespace_of(config, table->part[3], reason);
}

static int apply_limits(struct config *config, const char *key, const struct grammar_values *values,
                        char *reason)
{
    struct service *service = config->service;

    if (grammar_given(values, GRAMMAR_BOOLEAN) && values->yes)
        return config_refuse(reason, "locality domains are not supported");
    if (grammar_given(values, GRAMMAR_DEVICES))
        text_copy(service->devices, sizeof(service->devices), values->devices);
    if (grammar_given(values, GRAMMAR_TIMESLICE))
        service->timeslice_percent = values->timeslice_percent;
    if (grammar_given(values, GRAMMAR_ISOLATION))
        service->isolation = values->isolation;
    namespace_set(config->space, values);
    return grammar_given(values, GRAMMAR_UID) ? service_set_owner(service, values->uid, reason) : 0;
}

/* ---- users and groups ---- */

static int begin_user(struct config *config, const struct config_path *table, char *reason)
{
    *config->group = '\0';
    if (!user_number(table->part[1], &config->uid))
        return 0;
    text_format(reason, TOML_REASON_MAX, "there is no user %.100s", table->part[1]);
    return -EINVAL;
}

static int begin_group(struct config *config, const struct config_path *table, char *reason)
{
    const char *name = table->part[1];

    config->uid = 0;
    return grammar_is_name(name) && text_copy(config->group, sizeof(config->group), name)
               ? 0
               : config_refuse(reason, "a group is a name of letters, digits and _, not longer "
                                       "than 31");
}

static int apply_rule(struct config *config, const char *key, const struct grammar_values *values,
                      char *reason)
{
    const struct limit_change change = {
        .class = values->class,
        .sets_oversubscribe = grammar_given(values, GRAMMAR_OVERSUBSCRIBED),
        .oversubscribe = values->oversubscribed,
        .sets_evict_after = grammar_given(values, GRAMMAR_IDLE),
        .evict_after = values->idle,
        .sets_joint = grammar_given(values, GRAMMAR_JOINT),
        .joint = values->joint,
    };

    return limit_rules_set(&config->daemon->rules, config->group, config->uid, &change)
               ? config_refuse(reason, "there are too many users and groups with limits")
               : 0;
}

/* ---- partitions ---- */

static int begin_device(struct config *config, const struct config_path *table, char *reason)
{
    *config->device = '\0';
    return begin_server(config, table, reason);
}

static int apply_device(struct config *config, const char *key, const struct grammar_values *values,
                        char *reason)
{
    text_copy(config->device, sizeof(config->device), values->device);
    return 0;
}

/* Its keys follow; then end_partition() sees whether they were all. */
static int begin_partition(struct config *config, const struct config_path *table, char *reason)
{
    struct service *of_device = config->service;
    int error = begin_server(config, table, reason);

    if (error)
        return error;
    if (!*config->device || of_device != config->service)
        return config_refuse(reason, "a partition has to follow the uuid of its device");
    config->partition =
        static_partitions_define(&config->service->partitions, "", config->device, 0, false);
    config->service->partitions.on = true;
    if (config->partition)
        config->partition->is_of_file = true;
    return config->partition ? 0 : config_refuse(reason, "there cannot be more SM partitions");
}

static int apply_partition(struct config *config, const char *key,
                           const struct grammar_values *values, char *reason)
{
    struct static_partition *partition = config->partition;

    if (grammar_given(values, GRAMMAR_PARTITION) &&
        static_partitions_named(&config->service->partitions, values->partition, config->device))
        return config_refuse(reason, "two partitions of a device have the same name");
    if (grammar_given(values, GRAMMAR_PARTITION))
        text_copy(partition->name, sizeof(partition->name), values->partition);
    if (grammar_given(values, GRAMMAR_CHUNKS))
        partition->chunks = values->chunks;
    if (grammar_given(values, GRAMMAR_BOOLEAN))
        partition->takes_remainder = values->yes;
    if (grammar_given(values, GRAMMAR_LENT))
        partition->is_shareable = values->lent;
    if (grammar_given(values, GRAMMAR_MOST))
        partition->most_chunks = values->most;
    return 0;
}

int config_end_table(struct config *config, char *reason)
{
    const struct static_partition *partition = config->partition;

    config->partition = NULL;
    return !partition || (*partition->name && partition->chunks)
               ? 0
               : config_refuse(reason, "an SM partition has no name or no chunks");
}

/* ---- partitions of namespaces ---- */

static int begin_namespace_device(struct config *config, const struct config_path *table,
                                  char *reason)
{
    int error = begin_namespace(config, table, reason);

    if (!error && *config->space->partition_device)
        return config_refuse(reason, "a namespace has an SM partition of one device only");
    return error;
}

/* Where a namespace has a partition, the server's other programs have to name one. */
static int apply_namespace_device(struct config *config, const char *key,
                                  const struct grammar_values *values, char *reason)
{
    struct mps_namespace *space = config->space;

    if (grammar_given(values, GRAMMAR_DEVICE))
        text_copy(space->partition_device, sizeof(space->partition_device), values->device);
    if (grammar_given(values, GRAMMAR_PARTITION)) {
        text_copy(space->partition, sizeof(space->partition), values->partition);
        config->service->partitions.on = service_needs_partitions(config->service);
    }
    return 0;
}

/* ---- features ---- */

static int begin_feature(struct config *config, const struct config_path *table, char *reason)
{
    return 0;
}

static int apply_memacct(struct config *config, const char *key,
                         const struct grammar_values *values, char *reason)
{
    if (!strcmp(key, "enabled"))
        return values->yes ? 0 : config_refuse(reason, "memory accounting cannot be switched off");
    if (!strcmp(key, "force_polling")) {
        if (values->yes)
            journal("force_polling has no effect: servers count the memory of their clients "
                    "themselves, to the byte");
        return 0;
    }
    config->daemon->audits = values->yes;
    config->daemon->audits_by_order = true;
    return 0;
}

static int apply_context_share(struct config *config, const char *key,
                               const struct grammar_values *values, char *reason)
{
    if (!strcmp(key, "enabled") && !values->yes)
        return 0;
    return config_refuse(reason, "context-share is not supported");
}

static int apply_policy(struct config *config, const char *key, const struct grammar_values *values,
                        char *reason)
{
    if (grammar_given(values, GRAMMAR_POLICY))
        config->daemon->timeslice_us = timeslice_of_policy(values->policy);
    else
        journal("timeslice_yield_level = %u has no effect: a server that has no work leaves its "
                "time to the others "
                "at once, and the driver decides when running work is interrupted",
                values->yield);
    return 0;
}

/* ---- quotas ---- */

/* Quotas are not options of a command: their table knows their names. */
static int apply_quota(struct config *config, const char *key, const char *value, char *reason)
{
    char change[KEY_MAX + CONFIG_VALUE_MAX], name[KEY_MAX];

    text_copy(name, sizeof(name), key);
    for (char *letter = name; *letter; letter++)
        *letter = *letter == '_' ? '-' : *letter;
    if (strchr(key, '-') || strchr(value, ',') || strlen(key) >= KEY_MAX)
        return config_refuse(
            reason, "a quota is a name with _ and one value, such as host_memory = \"8G\"");
    text_format(change, sizeof(change), "%s=%s", name, value);
    return quotas_change(&config->daemon->quotas, change, reason);
}

/* ---- tables ---- */

static int begin_container(struct config *config, const struct config_path *table, char *reason)
{
    return 0;
}

static int apply_nothing(struct config *config, const char *key,
                         const struct grammar_values *values, char *reason)
{
    return 0;
}

static const struct config_kind kinds[] = {
    {{"servers"}, false, "", begin_container, apply_nothing},
    {{"servers", "*"}, false, SERVER, begin_server, apply_limits},
    {{"servers", "*", "namespaces"}, false, "", begin_container, apply_nothing},
    {{"servers", "*", "namespaces", "*"}, false, NAMESPACE, begin_namespace, apply_limits},
    {{"servers", "*", "namespaces", "*", "devices"},
     true,
     "[--uuid=DEVICE] [--sm-partition=PARTITION]",
     begin_namespace_device,
     apply_namespace_device},
    {{"servers", "*", "devices"}, true, "[--uuid=DEVICE]", begin_device, apply_device},
    {{"servers", "*", "devices", "sm_partitions"},
     true,
     "[--name=PARTITION] [--chunks=CHUNKS] [--include-remainder=BOOLEAN] [--shareable=LENT] "
     "[--max-chunks=MOST]",
     begin_partition,
     apply_partition},
    {{"compute_policy"},
     false,
     "[--timeslice=POLICY] [--timeslice-yield-level=YIELD]",
     begin_container,
     apply_policy},
    {{"users"}, false, "", begin_container, apply_nothing},
    {{"users", "*"}, false, RULE, begin_user, apply_rule},
    {{"groups"}, false, "", begin_container, apply_nothing},
    {{"groups", "*"}, false, RULE, begin_group, apply_rule},
    {{"quotas"}, false, "", begin_container, apply_nothing},
    {{"features"}, false, "", begin_container, apply_nothing},
    {{"features", "memacct"},
     false,
     "[--enabled=BOOLEAN] [--audit-log=BOOLEAN] [--force-polling=BOOLEAN]",
     begin_feature,
     apply_memacct},
    {{"features", "context-share"},
     false,
     "[--enabled=BOOLEAN] [--default-socket=OBJECT]",
     begin_feature,
     apply_context_share},
};

static bool is_of_kind(const struct config_kind *kind, const struct config_path *table)
{
    unsigned depth = 0;

    for (; depth < CONFIG_PATH_PARTS && kind->path[depth]; depth++)
        if (depth >= table->depth ||
            (strcmp(kind->path[depth], "*") && strcmp(kind->path[depth], table->part[depth])))
            return false;
    return depth == table->depth && kind->element == table->element;
}

int config_begin_table(struct config *config, const struct config_path *table, char *reason)
{
    config->kind = NULL;
    if (table->depth == 0)
        return 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (is_of_kind(&kinds[i], table))
            config->kind = &kinds[i];
    if (!config->kind) {
        text_format(reason, TOML_REASON_MAX,
                    "a table [%.100s...] is not known: [servers.NAME], "
                    "[servers.NAME.namespaces.NAME], [[servers.NAME.devices]], "
                    "[[servers.NAME.devices.sm_partitions]], [compute_policy], [users.NAME], "
                    "[groups.NAME], [features.NAME] and [quotas] are",
                    table->part[0]);
        return -EINVAL;
    }
    return config->kind->begin(config, table, reason);
}

/* ---- keys ---- */

/* The option's name has - where the key has _. */
static int parse_key(const char *grammar, const char *key, const char *value,
                     struct grammar_values *values, char *reason)
{
    char word[KEY_MAX + CONFIG_VALUE_MAX], option[KEY_MAX];
    char *words[] = {word};

    text_copy(option, sizeof(option), key);
    for (char *letter = option; *letter; letter++)
        *letter = *letter == '_' ? '-' : *letter;
    text_format(word, sizeof(word), "--%s=", option);
    if (strlen(key) >= KEY_MAX || strchr(key, '-') || !strstr(grammar, word)) {
        text_format(reason, TOML_REASON_MAX, "there is no key '%.100s' in this table", key);
        return -EINVAL;
    }
    text_format(word, sizeof(word), "--%s=%s", option, value);
    return grammar_parse("", grammar, words, 1, values, reason);
}

static int take_top_key(const char *key, const char *value, char *reason)
{
    if (!strcmp(key, "schema_version") && !strcmp(value, "1.0"))
        return 0;
    text_format(reason, TOML_REASON_MAX,
                "%.100s is not known outside of tables; schema_version = \"1.0\" is", key);
    return -EINVAL;
}

int config_take_value(struct config *config, const char *key, const char *value, char *reason)
{
    struct grammar_values values;
    int error;

    if (!config->kind)
        return take_top_key(key, value, reason);
    if (!strcmp(config->kind->path[0], "quotas"))
        return apply_quota(config, key, value, reason);
    error = parse_key(config->kind->grammar, key, value, &values, reason);
    return error ? error : config->kind->apply(config, key, &values, reason);
}
