/* SPDX-License-Identifier: Apache-2.0 */
/* See settings.h. */
#include "settings.h"

#include <errno.h>
#include <event2/buffer.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_protocol.h"
#include "commands.h"
#include "commands_service.h"
#include "console.h"
#include "hash.h"
#include "journal.h"
#include "own_file.h"
#include "partition_line.h"
#include "service.h"
#include "text.h"

#define FILE_NAME INSTANCE_SERVERS_NAME "/settings"
#define FIRST_LINE "funnel settings 1\n"
#define PARTITION "partition "
#define OF_DAEMON "-" /* in the place of a server's name */
#define FILE_MAX (1u << 20)
#define SETTINGS_MAX 1024

struct setting {
    struct list link;
    const char *command;          /* one of kept[] or cutting[] */
    struct grammar_values target; /* what it is about, without the values that it sets */
    char line[];
};

/* In the order in which they were set. */
static struct list settings = {&settings, &settings};
static bool is_restoring, is_failing;

/* ---- which commands ---- */

static const char *const kept[] = {"limit",
                                   "memacct set",
                                   "namespace create",
                                   "namespace delete",
                                   "namespace set",
                                   "server create",
                                   "server delete",
                                   "server set",
                                   "set_default_active_thread_percentage",
                                   "set_default_client_priority",
                                   "set_default_device_pinned_mem_limit"};

/* They change partitions, which are kept themselves. */
static const char *const cutting[] = {"sm-partition create", "sm-partition delete", "sm_partition"};

static const char *name_among(const char *const names[], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return names[i];
    return NULL;
}

static const char *kept_command(const char *name)
{
    return name_among(kept, sizeof(kept) / sizeof(*kept), name);
}

static bool cuts_partitions(const char *name)
{
    return name_among(cutting, sizeof(cutting) / sizeof(*cutting), name) != NULL;
}

/* ---- one setting ---- */

/* "waits=64,ranges=32" becomes "waits,ranges". */
static void strip_changes(char *changes)
{
    char *to = changes;
    bool in_value = false;

    for (const char *from = changes; *from; from++) {
        in_value = *from != ',' && (in_value || *from == '=');
        if (!in_value)
            *to++ = *from;
    }
    memset(to, 0, strlen(to));
}

/* A field that is not named here tells settings apart, which costs lines and loses none. */
static struct grammar_values target_of(const struct grammar_values *values)
{
    struct grammar_values target;

    memcpy(&target, values, sizeof(target));
    target.centipercent = target.priority = target.sms = target.timeslice_percent = 0;
    target.class = 0;
    target.memory = target.joint = 0;
    target.idle = 0;
    target.yes = target.oversubscribed = false;
    memset(target.memory_text, 0, sizeof(target.memory_text));
    memset(target.cgroup, 0, sizeof(target.cgroup));
    strip_changes(target.changes);
    return target;
}

static struct setting *setting_create(const char *command, char *const words[], int count,
                                      const struct grammar_values *values)
{
    size_t size = strlen(command) + 1;
    struct setting *setting;

    for (int i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    setting = calloc(1, sizeof(*setting) + size);
    if (!setting)
        return NULL;
    list_init(&setting->link);
    setting->command = command;
    setting->target = target_of(values);
    strcpy(setting->line, command);
    for (int i = 0; i < count; i++)
        strcat(strcat(setting->line, " "), words[i]);
    return setting;
}

static void setting_free(struct setting *setting)
{
    list_remove(&setting->link);
    free(setting);
}

/* ---- the list ---- */

static bool is_about(const struct setting *setting, const struct setting *other)
{
    return setting->command == other->command &&
           !memcmp(&setting->target, &other->target, sizeof(setting->target));
}

/* Whether `setting` is about the server or namespace that `deletion` deletes, or something in it.
 */
static bool is_within(const struct setting *setting, const struct setting *deletion)
{
    return *deletion->target.name && !strcmp(setting->target.name, deletion->target.name) &&
           (!*deletion->target.space || !strcmp(setting->target.space, deletion->target.space));
}

static bool deletes(const struct setting *setting)
{
    return !strcmp(setting->command, "server delete") ||
           !strcmp(setting->command, "namespace delete");
}

/* Whether the deleted thing was made by a command alone, so that its deletion leaves nothing to be
 * kept. The configuration file's stay deleted. */
static bool drop_deleted(const struct setting *deletion)
{
    bool created = false, deleted = false;

    list_for_each_safe (struct setting, setting, &settings, link) {
        if (!is_within(setting, deletion))
            continue;
        bool is_whole = !strcmp(setting->target.space, deletion->target.space);

        created |= is_whole && strstr(setting->command, " create");
        deleted |= is_whole && deletes(setting);
        setting_free(setting);
    }
    return created && !deleted;
}

static unsigned count_settings(void)
{
    unsigned count = 0;

    list_for_each (struct setting, setting, &settings, link)
        count++;
    return count;
}

/* Takes `setting`. */
static void add_setting(struct setting *setting)
{
    if (deletes(setting)) {
        if (drop_deleted(setting)) {
            setting_free(setting);
            return;
        }
    } else
        list_for_each_safe (struct setting, earlier, &settings, link)
            if (is_about(earlier, setting))
                setting_free(earlier);
    if (count_settings() < SETTINGS_MAX) {
        list_append(&settings, &setting->link);
        return;
    }
    journal("There are %d settings, and no more are kept: \"%.200s\" ends with this daemon",
            SETTINGS_MAX, setting->line);
    setting_free(setting);
}

/* ---- writing ---- */

static void add_partitions(struct evbuffer *text, const char *server,
                           const struct static_partitions *partitions)
{
    char line[PARTITION_LINE_MAX];

    for (unsigned i = 0; i < partitions->count; i++) {
        partition_line_write(&partitions->partition[i], line);
        evbuffer_add_printf(text, PARTITION "%s %s\n", server, line);
    }
}

static void add_text(struct evbuffer *text, const struct daemon *daemon)
{
    evbuffer_add_printf(text, "%s", FIRST_LINE);
    list_for_each (struct setting, setting, &settings, link)
        evbuffer_add_printf(text, "%s\n", setting->line);
    add_partitions(text, OF_DAEMON, &daemon->partitions);
    list_for_each (struct service, service, &daemon->services, link)
        add_partitions(text, service->name, &service->partitions);
}

static int write_text(const struct daemon *daemon, struct evbuffer *text)
{
    char path[PATH_MAX];
    size_t size = evbuffer_get_length(text);
    int error = path_join(daemon->paths.pipe, FILE_NAME, path, sizeof(path));

    evbuffer_add_printf(text, "end %016llx\n",
                        (unsigned long long)hash_bytes(evbuffer_pullup(text, -1), size));
    size = evbuffer_get_length(text);
    return error ? error : own_file_replace(path, evbuffer_pullup(text, -1), size);
}

static void write_settings(const struct daemon *daemon)
{
    struct evbuffer *text = evbuffer_new();
    int error = -ENOMEM;

    if (text) {
        add_text(text, daemon);
        error = write_text(daemon, text);
        evbuffer_free(text);
    }
    if (error && !is_failing)
        journal("What commands have set cannot be written to " FILE_NAME " (%s): if this daemon is "
                "killed or reloaded, the next one will not know it",
                strerror(-error));
    is_failing = error != 0;
}

void settings_forget(const struct daemon *daemon)
{
    char path[PATH_MAX];

    if (!path_join(daemon->paths.pipe, FILE_NAME, path, sizeof(path)))
        unlink(path);
}

/* ---- commands ---- */

/* A setting of one client ends with the client, and its server knows it. */
static bool is_of_client(const struct grammar_values *values)
{
    return grammar_given(values, GRAMMAR_CLIENT);
}

void settings_begin(struct console *console, const char *command, char *const words[], int count,
                    const struct grammar_values *values)
{
    const char *name = kept_command(command);

    console->cuts_partitions = cuts_partitions(command);
    if (name && !is_of_client(values))
        console->setting = setting_create(name, words, count, values);
}

void settings_end(struct console *console, int status)
{
    struct setting *setting = console->setting;
    bool changes = status == COMMAND_OK && (setting || console->cuts_partitions);

    console->setting = NULL;
    console->cuts_partitions = false;
    if (setting && status == COMMAND_OK)
        add_setting(setting);
    else if (setting)
        setting_free(setting);
    if (changes && !is_restoring)
        write_settings(console->daemon);
}

/* ---- reading ---- */

static void complain(const char *line)
{
    journal("\"%.200s\" in " FILE_NAME " is no setting, and is left out", line);
}

static void restore_partition(struct daemon *daemon, const char *line)
{
    const char *rest = line + strlen(PARTITION), *blank = strchr(rest, ' ');
    char name[SERVER_NAME_MAX], reason[GRAMMAR_REASON_MAX];
    struct static_partitions *partitions = &daemon->partitions;

    if (!blank || !text_format(name, sizeof(name), "%.*s", (int)(blank - rest), rest)) {
        complain(line);
        return;
    }
    if (strcmp(name, OF_DAEMON)) {
        struct service *service = command_find_service(daemon, name, reason);

        partitions = service ? &service->partitions : NULL;
    }
    if (!partitions || partition_line_restore(partitions, blank + 1))
        complain(line);
}

/* Whether a command that is kept begins the line. */
static bool begins_with_kept(const char *line)
{
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        if (text_starts_with(line, kept[i]) && line[strlen(kept[i])] == ' ')
            return true;
    return !strcmp(line, "set_default_client_priority");
}

static void restore_line(struct daemon *daemon, char *line)
{
    if (text_starts_with(line, PARTITION))
        restore_partition(daemon, line);
    else if (begins_with_kept(line))
        console_run_for_daemon(daemon, line);
    else
        complain(line);
}

/* 0 with the text cut behind its last line; -EBADMSG when it is not whole. */
static int check_text(char *text, size_t size)
{
    static const size_t end_size = sizeof("end 0123456789abcdef\n") - 1;
    char end[32];

    if (size < end_size || strlen(text) != size || !text_starts_with(text, FIRST_LINE))
        return -EBADMSG;
    size -= end_size;
    text_format(end, sizeof(end), "end %016llx\n", (unsigned long long)hash_bytes(text, size));
    if (strcmp(text + size, end))
        return -EBADMSG;
    text[size] = '\0';
    return 0;
}

static int read_text(const struct daemon *daemon, char **ret_text)
{
    char path[PATH_MAX];
    size_t size = 0;
    int error = path_join(daemon->paths.pipe, FILE_NAME, path, sizeof(path));

    if (!error)
        error = own_file_read(path, FILE_MAX, ret_text, &size);
    return error ? error : check_text(*ret_text, size);
}

static void restore_text(struct daemon *daemon, char *text)
{
    char *rest = NULL;

    is_restoring = true;
    strtok_r(text, "\n", &rest); /* the first line, which was checked */
    for (char *line = strtok_r(NULL, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        restore_line(daemon, line);
    is_restoring = false;
    if (count_settings())
        journal("%u settings that commands have made to an earlier daemon are in force again",
                count_settings());
}

static bool has_partitions(const struct daemon *daemon)
{
    bool any = daemon->partitions.count > 0;

    list_for_each (struct service, service, &daemon->services, link)
        any |= service->partitions.count > 0;
    return any;
}

static const char *describe_error(int error)
{
    return error == -EBADMSG ? "it is not whole"
           : error == -EPERM ? "it is not a file of the daemon's user alone"
                             : strerror(-error);
}

void settings_restore(struct daemon *daemon)
{
    char *text = NULL;
    int error = read_text(daemon, &text);

    if (!error)
        restore_text(daemon, text);
    else if (error != -ENOENT)
        journal("What commands have set before is lost, as " FILE_NAME " cannot be used: %s",
                describe_error(error));
    free(text);
    if (!error || has_partitions(daemon))
        write_settings(daemon);
}
