/* SPDX-License-Identifier: Apache-2.0 */
/* See grammar_value.h. */
#include "grammar_value.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client_class.h"
#include "isolation.h"
#include "text.h"

#define SECONDS_PER_YEAR (366u * 24 * 3600)

static int parse_number(const char *text, uint64_t max, uint64_t *ret_value)
{
    uint64_t value;

    if (text_to_u64(text, &value) || value > max)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

int grammar_percent(const char *text, uint32_t *ret_centipercent)
{
    char *end;
    double percent = strtod(text, &end);

    /* strtod() takes more than decimal numbers: 0x20, inf, nan. */
    if (end == text || *end || strspn(text, "+.0123456789eE-") != strlen(text) ||
        !isfinite(percent) || percent <= 0)
        return -EINVAL;
    /* NVIDIA's daemon answers 100.0 to more than 100; scripts may rely on it. */
    percent = percent > 100 ? 100 : percent;
    *ret_centipercent = (uint32_t)(percent * 100 + 0.5);
    if (*ret_centipercent == 0)
        *ret_centipercent = 1;
    return 0;
}

/* How far the number is shifted for this unit, or 0. */
static unsigned shift_of_unit(const char *unit)
{
    static const char *const units[][3] = {{"K", "KB", "k"}, {"M", "MB", "m"}, {"G", "GB", "g"}};

    for (unsigned i = 0; i < 9; i++)
        if (!strcmp(unit, units[i / 3][i % 3]))
            return 10 * (i / 3 + 1);
    return 0;
}

int grammar_size(const char *text, uint64_t *ret_bytes)
{
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits;
    char number[24];
    uint64_t value;
    unsigned shift = shift_of_unit(unit);

    if (digits == 0 || digits >= sizeof(number) || shift == 0)
        return -EINVAL;
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (parse_number(number, UINT64_MAX >> shift, &value) || value == 0)
        return -EINVAL;
    *ret_bytes = value << shift;
    return 0;
}

int grammar_memory(const char *text, uint64_t *ret_bytes)
{
    return shift_of_unit(text + strspn(text, "0123456789")) < 20 ? -EINVAL
                                                                 : grammar_size(text, ret_bytes);
}

/* "2048M" stays 2048M and "1GB" becomes 1G: the number as given, with NVIDIA's one-letter unit. */
static int parse_size(const char *text, struct grammar_values *values)
{
    size_t digits = strspn(text, "0123456789");

    if (grammar_size(text, &values->memory))
        return -EINVAL;
    text_format(values->memory_text, sizeof(values->memory_text), "%.*s%c", (int)digits, text,
                toupper((unsigned char)text[digits]));
    return 0;
}

static int parse_memory(const char *text, struct grammar_values *values)
{
    uint64_t bytes;

    return grammar_memory(text, &bytes) ? -EINVAL : parse_size(text, values);
}

bool grammar_is_devices(const char *text)
{
    for (;; text++) {
        size_t number = strspn(text, "0123456789");

        if (text_starts_with(text, "GPU-"))
            text += strspn(text, "GPU-0123456789abcdefABCDEF");
        else if (number)
            text += number;
        else
            return false;
        if (*text != ',')
            return !*text;
    }
}

bool grammar_is_name(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return length > 0 && text[length] == '\0';
}

/* ---- kinds of values: each becomes a field of grammar_values ---- */

static void *field_of(const struct grammar_value *kind, struct grammar_values *values)
{
    return (char *)values + kind->field;
}

static int take_number(const struct grammar_value *kind, const char *word,
                       struct grammar_values *values)
{
    uint64_t value;

    if (parse_number(word, kind->most, &value) || value < kind->least)
        return -EINVAL;
    *(uint32_t *)field_of(kind, values) = (uint32_t)value;
    return 0;
}

static int take_text(const struct grammar_value *kind, const char *word,
                     struct grammar_values *values)
{
    return *word && text_copy(field_of(kind, values), kind->most, word) ? 0 : -EINVAL;
}

static int take_name(const struct grammar_value *kind, const char *word,
                     struct grammar_values *values)
{
    return grammar_is_name(word) ? take_text(kind, word, values) : -EINVAL;
}

static int take_devices(const struct grammar_value *kind, const char *word,
                        struct grammar_values *values)
{
    return grammar_is_devices(word) ? take_text(kind, word, values) : -EINVAL;
}

static int take_feature(const struct grammar_value *kind, const char *word,
                        struct grammar_values *values)
{
    return !strcmp(word, "memacct") || !strcmp(word, "context-share")
               ? take_text(kind, word, values)
               : -EINVAL;
}

static int take_percent(const struct grammar_value *kind, const char *word,
                        struct grammar_values *values)
{
    return grammar_percent(word, &values->centipercent);
}

static int take_share(const struct grammar_value *kind, const char *word,
                      struct grammar_values *values)
{
    return grammar_percent(word, &values->centipercent) || strtod(word, NULL) > 100 ? -EINVAL : 0;
}

static int take_quota(const struct grammar_value *kind, const char *word,
                      struct grammar_values *values)
{
    return strcmp(word, "none") ? take_share(kind, word, values) : 0;
}

static int take_memory(const struct grammar_value *kind, const char *word,
                       struct grammar_values *values)
{
    return parse_memory(word, values);
}

static int take_size(const struct grammar_value *kind, const char *word,
                     struct grammar_values *values)
{
    return parse_size(word, values);
}

static int take_ceiling(const struct grammar_value *kind, const char *word,
                        struct grammar_values *values)
{
    return strcmp(word, "none") ? parse_memory(word, values) : 0;
}

static int take_joint(const struct grammar_value *kind, const char *word,
                      struct grammar_values *values)
{
    return strcmp(word, "none") ? grammar_memory(word, &values->joint) : 0;
}

static int take_idle(const struct grammar_value *kind, const char *word,
                     struct grammar_values *values)
{
    return strcmp(word, "none") ? take_number(kind, word, values) : 0;
}

/* A directory in the form in which it is compared with those of processes. */
static bool is_cgroup(const char *path)
{
    size_t length = strlen(path);

    for (const char *byte = path; *byte; byte++)
        if ((unsigned char)*byte < ' ')
            return false;
    return text_starts_with(path, "/sys/fs/cgroup/") && path[length - 1] != '/' &&
           !strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../") &&
           strcmp(path + length - 2, "/.") && strcmp(path + length - 3, "/..");
}

static int take_cgroup(const struct grammar_value *kind, const char *word,
                       struct grammar_values *values)
{
    if (!strcmp(word, "none"))
        return 0;
    return is_cgroup(word) ? take_text(kind, word, values) : -EINVAL;
}

static int take_levels(const struct grammar_value *kind, const char *word,
                       struct grammar_values *values)
{
    values->levels = GRAMMAR_LEVELS_ALL;
    return strcmp(word, "all") ? take_number(kind, word, values) : 0;
}

static int read_boolean(const char *word, bool *ret_yes)
{
    *ret_yes = !strcmp(word, "true");
    return *ret_yes || !strcmp(word, "false") ? 0 : -EINVAL;
}

static int take_boolean(const struct grammar_value *kind, const char *word,
                        struct grammar_values *values)
{
    return read_boolean(word, &values->yes);
}

static int take_shown(const struct grammar_value *kind, const char *word,
                      struct grammar_values *values)
{
    return read_boolean(word, &values->shown);
}

static int take_lent(const struct grammar_value *kind, const char *word,
                     struct grammar_values *values)
{
    return read_boolean(word, &values->lent);
}

static int take_oversubscribed(const struct grammar_value *kind, const char *word,
                               struct grammar_values *values)
{
    return read_boolean(word, &values->oversubscribed);
}

static int take_class(const struct grammar_value *kind, const char *word,
                      struct grammar_values *values)
{
    return client_class_parse(word, &values->class) ? 0 : -EINVAL;
}

static int take_isolation(const struct grammar_value *kind, const char *word,
                          struct grammar_values *values)
{
    return isolation_parse(word, &values->isolation) ? 0 : -EINVAL;
}

/* The place of the word among `count` names, or -EINVAL. */
static int place_of_word(const char *word, const char *const names[], int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(word, names[i]))
            return i;
    return -EINVAL;
}

static int take_format(const struct grammar_value *kind, const char *word,
                       struct grammar_values *values)
{
    static const char *const names[] = {"table", "csv", "csv,noheader"};
    int place = place_of_word(word, names, sizeof(names) / sizeof(*names));

    values->format = place < 0 ? TABLE_PLAIN : (enum table_format)place;
    return place < 0 ? place : 0;
}

static int take_policy(const struct grammar_value *kind, const char *word,
                       struct grammar_values *values)
{
    static const char *const names[] = {"default", "short", "medium", "long"};
    int place = place_of_word(word, names, sizeof(names) / sizeof(*names));

    values->policy = place < 0 ? 0 : (uint32_t)place;
    return place < 0 ? place : 0;
}

#define NUMBER(member, least, most) \
    take_number, offsetof(struct grammar_values, member), least, most
#define TEXT(take, member)                            \
    take, offsetof(struct grammar_values, member), 0, \
        sizeof(((struct grammar_values *)NULL)->member)
#define A_NAME "a name of letters, digits and _, not longer than 64"

static const struct grammar_value kinds[] = {
    [GRAMMAR_NOTHING] = {"", "nothing", NULL, 0, 0, 0},
    [GRAMMAR_SERVER] = {"SERVER", "the process id of a server", NUMBER(server, 1, INT_MAX)},
    [GRAMMAR_CLIENT] = {"CLIENT", "the process id of a client", NUMBER(client, 1, INT_MAX)},
    [GRAMMAR_UID] = {"UID", "a user id", NUMBER(uid, 0, UINT32_MAX - 1)},
    [GRAMMAR_PERCENT] = {"PERCENT", "a percentage above 0", take_percent, 0, 0, 0},
    [GRAMMAR_PRIORITY] = {"PRIORITY", "0 or 1", NUMBER(priority, 0, 1)},
    [GRAMMAR_SECONDS] = {"SECONDS", "a number of seconds", NUMBER(seconds, 0, SECONDS_PER_YEAR)},
    [GRAMMAR_MEMORY] = {"MEMORY", "an integer followed by M or G, such as 512M", take_memory, 0, 0,
                        0},
    [GRAMMAR_DEVICE] = {"DEVICE", "a device ordinal or UUID", TEXT(take_text, device)},
    [GRAMMAR_GROUP] = {"GROUP", "a name of letters, digits and _, not longer than 31",
                       TEXT(take_name, group)},
    [GRAMMAR_SMS] = {"SMS", "a number of multiprocessors", NUMBER(sms, 1, 1u << 16)},
    [GRAMMAR_CEILING] = {"CEILING", "an integer followed by M or G, such as 512M, or none",
                         take_ceiling, 0, 0, 0},
    [GRAMMAR_JOINT] = {"JOINT", "an integer followed by M or G, such as 512M, or none", take_joint,
                       0, 0, 0},
    [GRAMMAR_IDLE] = {"IDLE", "a number of seconds above 0, or none", take_idle,
                      offsetof(struct grammar_values, idle), 1, SECONDS_PER_YEAR},
    [GRAMMAR_VERB] = {"VERB", "a word, and a shorter one", TEXT(take_text, verb)},
    [GRAMMAR_OBJECT] = {"OBJECT", "a word, and a shorter one", TEXT(take_text, object)},
    [GRAMMAR_NAME] = {"NAME", A_NAME, TEXT(take_name, name)},
    [GRAMMAR_FIELD] = {"FIELD", "the name of a field", TEXT(take_text, field)},
    [GRAMMAR_FORMAT] = {"FORMAT", "table, csv or csv,noheader", take_format, 0, 0, 0},
    [GRAMMAR_DEVICES] = {"DEVICES", "ordinals or UUIDs of devices, with commas between them",
                         TEXT(take_devices, devices)},
    [GRAMMAR_SIZE] = {"SIZE", "an integer followed by K, M or G, such as 512M", take_size, 0, 0, 0},
    [GRAMMAR_BOOLEAN] = {"BOOLEAN", "true or false", take_boolean, 0, 0, 0},
    [GRAMMAR_NAMESPACE] = {"NAMESPACE", A_NAME, TEXT(take_name, space)},
    [GRAMMAR_PARTITION] = {"PARTITION", A_NAME, TEXT(take_name, partition)},
    [GRAMMAR_CHUNKS] = {"CHUNKS", "a number of chunks, 8 multiprocessors each (4 before Hopper)",
                        NUMBER(chunks, 1, 4096)},
    [GRAMMAR_SHARE] = {"SHARE", "a percentage above 0 and at most 100", take_share, 0, 0, 0},
    [GRAMMAR_QUOTA] = {"QUOTA", "a percentage above 0 and at most 100, or none", take_quota, 0, 0,
                       0},
    [GRAMMAR_CHANGES] = {"CHANGES", "NAME=VALUE, or several of these with commas between them",
                         TEXT(take_text, changes)},
    [GRAMMAR_TIMESLICE] = {"TIMESLICE", "a percentage of 1 to 100, or 0 for none",
                           NUMBER(timeslice_percent, 0, 100)},
    [GRAMMAR_CGROUP] = {"CGROUP", "a directory below /sys/fs/cgroup, without / at its end, or none",
                        TEXT(take_cgroup, cgroup)},
    [GRAMMAR_LEVELS] = {"LEVELS", "a number of levels of control groups, or all", take_levels,
                        offsetof(struct grammar_values, levels), 0, 64},
    [GRAMMAR_SHOWN] = {"SHOWN", "true or false", take_shown, 0, 0, 0},
    [GRAMMAR_LENT] = {"LENT", "true or false", take_lent, 0, 0, 0},
    [GRAMMAR_OVERSUBSCRIBED] = {"OVERSUBSCRIBED", "true or false", take_oversubscribed, 0, 0, 0},
    [GRAMMAR_MOST] = {"MOST", "a number of chunks", NUMBER(most, 1, 4096)},
    [GRAMMAR_POLICY] = {"POLICY", "default, short, medium or long", take_policy, 0, 0, 0},
    [GRAMMAR_YIELD] = {"YIELD", "a number up to 255", NUMBER(yield, 0, 255)},
    [GRAMMAR_CLASS] = {"CLASS", CLASS_EXPECTED, take_class, 0, 0, 0},
    [GRAMMAR_ISOLATION] = {"ISOLATION", ISOLATION_EXPECTED, take_isolation, 0, 0, 0},
    [GRAMMAR_FEATURE] = {"FEATURE", "memacct or context-share", TEXT(take_feature, feature)},
};

const struct grammar_value *grammar_value_of(enum grammar_kind kind)
{
    return &kinds[kind];
}

enum grammar_kind grammar_kind_named(const char *name, size_t length)
{
    for (size_t i = 1; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strlen(kinds[i].name) == length && !strncmp(kinds[i].name, name, length))
            return (enum grammar_kind)i;
    return GRAMMAR_NOTHING;
}
