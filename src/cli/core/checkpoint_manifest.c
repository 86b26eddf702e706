/* SPDX-License-Identifier: Apache-2.0 */
/* See checkpoint_manifest.h. */
#include "checkpoint_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "cli.h"
#include "fd.h"
#include "gpu_uuid.h"
#include "hash.h"
#include "process_stat.h"
#include "text.h"

#define TEXT_MAX 16384
#define FIRST_LINE "funnel-checkpoint="
#define LAST_LINE "checksum="

static const char *const states[] = {"running", "suspended", "detached"};

const char *checkpoint_state_name(enum checkpoint_state state)
{
    return states[state];
}

/* ---- of a client ---- */

static void add_device(struct checkpoint_manifest *manifest, const struct server_device *device)
{
    struct checkpoint_device *added = &manifest->devices[manifest->device_count++];

    device_uuid_text(device, added->uuid);
    text_copy(added->name, sizeof(added->name), device->name);
}

void checkpoint_manifest_fill(struct checkpoint_manifest *manifest, const struct snapshot *snapshot,
                              const struct command_client *client)
{
    const struct command_server *server = snapshot_server_of(snapshot, client);
    const time_t now = time(NULL);
    struct tm parts;

    manifest->pid = client->row.identity.pid;
    manifest->id = (int32_t)client->row.id;
    manifest->started = process_stat_read(client->seen_pid).started;
    text_copy(manifest->release, sizeof(manifest->release), FUNNEL_VERSION);
    text_copy(manifest->command, sizeof(manifest->command), client->row.identity.command);
    strftime(manifest->created, sizeof(manifest->created), "%Y-%m-%dT%H:%M:%SZ",
             gmtime_r(&now, &parts));
    for (unsigned i = 0; i < server->device_count && i < CHECKPOINT_DEVICES_MAX; i++) {
        add_device(manifest, &server->devices[i]);
        manifest->device_bytes += client->row.memory_used[i];
    }
}

/* ---- writing ---- */

static void write_lines(FILE *out, const struct checkpoint_manifest *manifest)
{
    fprintf(out, FIRST_LINE "%u\nrelease=%s\ncreated=%s\nstate=%s\n",
            manifest->is_packed ? CHECKPOINT_FORMAT_PACKED : CHECKPOINT_FORMAT, manifest->release,
            manifest->created, states[manifest->state]);
    fprintf(out, "pid=%d\nid=%d\nstarted=%" PRIu64 "\ncommand=%s\n", manifest->pid, manifest->id,
            manifest->started, manifest->command);
    for (unsigned i = 0; i < manifest->device_count; i++)
        fprintf(out, "device=%s %s\n", manifest->devices[i].uuid, manifest->devices[i].name);
    fprintf(out, "memory_size=%" PRIu64 "\n", manifest->memory_size);
    if (manifest->is_packed)
        fprintf(out, "list_checksum=0x%016" PRIx64 "\n", manifest->list_checksum);
}

static char *make_text(const struct checkpoint_manifest *manifest)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    write_lines(out, manifest);
    fflush(out);
    fprintf(out, LAST_LINE "%016" PRIx64 "\n", hash_bytes(text, size));
    fclose(out);
    return text;
}

static int write_to(int directory, const char *name, const struct checkpoint_manifest *manifest)
{
    _cleanup_free_ char *text = make_text(manifest);
    _cleanup_fd_ int fd = fd_create_anew(directory, name);

    if (!text)
        return -ENOMEM;
    if (fd < 0)
        return -errno;
    int error = write_all(fd, text, strlen(text));
    return error || !fsync(fd) ? error : -errno;
}

int checkpoint_manifest_write(int directory, const struct checkpoint_manifest *manifest)
{
    return write_to(directory, "manifest", manifest);
}

int checkpoint_manifest_replace(int directory, const struct checkpoint_manifest *manifest)
{
    return fd_put_in_place(directory, "manifest.new", "manifest",
                           write_to(directory, "manifest.new", manifest));
}

/* ---- reading ---- */

static void take_number(const char *value, uint64_t *ret_number)
{
    if (text_to_u64(value, ret_number))
        *ret_number = 0;
}

static void take_state(const char *value, enum checkpoint_state *ret_state)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (!strcmp(value, states[i]))
            *ret_state = (enum checkpoint_state)i;
}

static void take_device(const char *value, struct checkpoint_manifest *manifest)
{
    struct checkpoint_device *device = &manifest->devices[manifest->device_count];
    const char *name = strchr(value, ' ');

    if (manifest->device_count == CHECKPOINT_DEVICES_MAX || !name)
        return;
    text_format(device->uuid, sizeof(device->uuid), "%.*s", (int)(name - value), value);
    text_copy(device->name, sizeof(device->name), name + 1);
    manifest->device_count++;
}

static void take_line(const char *name, const char *value, struct checkpoint_manifest *manifest)
{
    uint64_t number = 0;

    if (!strcmp(name, "state"))
        take_state(value, &manifest->state);
    else if (!strcmp(name, "device"))
        take_device(value, manifest);
    else if (!strcmp(name, "command"))
        text_copy(manifest->command, sizeof(manifest->command), value);
    else if (!strcmp(name, "release"))
        text_copy(manifest->release, sizeof(manifest->release), value);
    else if (!strcmp(name, "created"))
        text_copy(manifest->created, sizeof(manifest->created), value);
    else if (!strcmp(name, "started"))
        take_number(value, &manifest->started);
    else if (!strcmp(name, "list_checksum"))
        take_number(value, &manifest->list_checksum);
    else if (!strcmp(name, "memory_size"))
        take_number(value, &manifest->memory_size);
    else if (!strcmp(name, "pid") || !strcmp(name, "id")) {
        take_number(value, &number);
        *(*name == 'p' ? &manifest->pid : &manifest->id) = (int32_t)number;
    }
}

static void take_lines(char *text, struct checkpoint_manifest *manifest)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');

        if (!value)
            continue;
        *value = '\0';
        text_make_printable(value + 1);
        take_line(line, value + 1, manifest);
    }
}

static bool is_whole(const char *text)
{
    const char *last = strstr(text, "\n" LAST_LINE);

    return last && strtoull(last + 1 + strlen(LAST_LINE), NULL, 16) ==
                       hash_bytes(text, (size_t)(last + 1 - text));
}

static int check_text(const char *path, const char *text, bool *ret_packed)
{
    uint64_t format;

    if (!text_starts_with(text, FIRST_LINE))
        return cli_fail("%s/manifest is not that of a checkpoint", path);
    format = strtoull(text + strlen(FIRST_LINE), NULL, 10);
    *ret_packed = format == CHECKPOINT_FORMAT_PACKED;
    if (format != CHECKPOINT_FORMAT && !*ret_packed)
        return cli_fail("%s has format %" PRIu64 ", and this release reads formats %u and %u; use "
                        "the release that has made it",
                        path, format, CHECKPOINT_FORMAT, CHECKPOINT_FORMAT_PACKED);
    return is_whole(text) ? 0 : cli_fail("%s/manifest is not as it was written", path);
}

int checkpoint_manifest_read(const char *path, struct checkpoint_manifest *ret_manifest)
{
    char text[TEXT_MAX + 1], name[PATH_MAX];

    if (path_join(path, "manifest", name, sizeof(name)))
        return cli_fail("the path %s is too long", path);
    _cleanup_fd_ int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, TEXT_MAX);
    if (size < 0)
        return cli_fail("%s is no checkpoint: %s: %s", path, name, strerror(errno));
    text[size] = '\0';
    memset(ret_manifest, 0, sizeof(*ret_manifest));
    if (check_text(path, text, &ret_manifest->is_packed))
        return 1;
    take_lines(text, ret_manifest);
    return 0;
}
