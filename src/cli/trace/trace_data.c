/* SPDX-License-Identifier: Apache-2.0 */
/* See trace_data.h. The files are written by servers, so what they hold is checked. */
#include "trace_data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "cli.h"
#include "clock.h"
#include "command_client.h"
#include "daemon_lines.h"
#include "fd.h"
#include "shm.h"
#include "text.h"

/* How much longer than ordered a trace may take: threads of clients that sleep see its end late. */
#define GRACE_NS (4 * NS_PER_SEC)

/* How far back the search for what work waited behind goes. */
#define SEARCHED_MAX 512u

/* ---- files ---- */

static int add_file(struct trace_data *data, const struct command_trace *message, int fd)
{
    struct trace_server *server = &data->servers[data->server_count];
    void *file;

    if (data->server_count == TRACE_SERVERS_MAX || shm_check(fd, TRACE_FILE_SIZE) ||
        shm_map(fd, TRACE_FILE_SIZE, NULL, SHM_READ_ONLY, &file))
        return cli_fail("the file of a server cannot be mapped");
    text_format(server->name, sizeof(server->name), "%.*s", (int)sizeof(message->name) - 1,
                message->name);
    server->pid = message->server_pid;
    data->files[data->server_count++] = file;
    return 0;
}

static int receive_files(int fd, struct trace_data *data)
{
    static union command_any message;
    char reason[COMMAND_TEXT_MAX] = "";
    size_t length;
    int kind = 0;

    while (kind >= 0 && kind != COMMAND_DONE) {
        _cleanup_fd_ int file = -1;

        kind = command_receive_file(fd, &message, &length, &file);
        if (kind == COMMAND_OUTPUT)
            text_copy(reason, sizeof(reason), message.text.text);
        else if (kind == COMMAND_TRACE && file >= 0 && add_file(data, &message.trace, file))
            return 1;
    }
    if (kind < 0)
        return cli_fail("%s", command_lost(kind));
    return message.done.status == COMMAND_OK ? 0 : cli_fail("%s", reason);
}

/* ---- waiting ---- */

static bool is_done(const struct trace_header *file)
{
    return atomic_load_explicit(&file->done, memory_order_acquire);
}

static bool has_begun(const struct trace_header *file)
{
    return atomic_load_explicit(&file->magic, memory_order_acquire) == TRACE_MAGIC;
}

static bool all_are_done(const struct trace_data *data, bool late)
{
    for (unsigned i = 0; i < data->server_count; i++)
        if (!is_done(data->files[i]) && !(late && !has_begun(data->files[i])))
            return false;
    return true;
}

/* The trace is no longer than the connection to the daemon, so `stop` closes that. Then the servers
 * write down the work that has been done. */
static void wait_for_files(const struct trace_data *data, int daemon, unsigned seconds,
                           const volatile sig_atomic_t *stop)
{
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    uint64_t begin = clock_ns(), end = begin + seconds * NS_PER_SEC + GRACE_NS;
    bool stopped = false;

    while (clock_ns() < end && !all_are_done(data, clock_ns() > begin + NS_PER_SEC)) {
        if (*stop && !stopped) {
            stopped = true;
            shutdown(daemon, SHUT_RDWR);
            end = clock_ns() + GRACE_NS;
        }
        nanosleep(&pause, NULL);
    }
}

/* ---- records ---- */

static bool take_record(const struct trace_record *from, struct trace_record *ret_record)
{
    uint32_t kind = atomic_load_explicit(&from->kind, memory_order_acquire);

    memcpy((char *)ret_record, (const char *)from, sizeof(*ret_record));
    ret_record->kind = kind;
    ret_record->name[sizeof(ret_record->name) - 1] = '\0';
    for (char *letter = ret_record->name; *letter; letter++)
        if (*letter < ' ' || *letter > '~')
            *letter = '?';
    return kind >= TRACE_CLIENT && kind <= TRACE_RANGE &&
           ret_record->end_ns >= ret_record->begin_ns;
}

static unsigned count_of(const struct trace_header *file)
{
    uint32_t next = atomic_load_explicit(&file->next, memory_order_relaxed);

    return next < TRACE_RECORDS_MAX ? next : TRACE_RECORDS_MAX;
}

static void take_records(struct trace_data *data, unsigned server)
{
    struct trace_header *file = data->files[server];

    text_format(data->servers[server].device, sizeof(data->servers[server].device), "%.*s",
                (int)sizeof(file->device_name) - 1, file->device_name);
    for (unsigned i = 0; i < data->servers[server].count; i++) {
        struct trace_entry *entry = &data->entries[data->count];

        *entry = (struct trace_entry){.server = server};
        data->count += take_record(&trace_records(file)[i], &entry->record);
    }
    data->lost += atomic_load_explicit(&file->lost, memory_order_relaxed) +
                  (atomic_load_explicit(&file->next, memory_order_relaxed) > TRACE_RECORDS_MAX);
    if (!data->begin_ns || file->begin_ns < data->begin_ns)
        data->begin_ns = file->begin_ns;
}

static int compare_records(const void *left, const void *right)
{
    const struct trace_entry *a = left, *b = right;

    return (a->record.begin_ns > b->record.begin_ns) - (a->record.begin_ns < b->record.begin_ns);
}

/* ---- waits ---- */

static bool is_same_device(const struct trace_data *data, const struct trace_entry *a,
                           const struct trace_entry *b)
{
    return a->record.device == b->record.device &&
           !strcmp(data->servers[a->server].device, data->servers[b->server].device);
}

static bool is_same_client(const struct trace_entry *a, const struct trace_entry *b)
{
    return a->server == b->server && a->record.id == b->record.id;
}

/* For how long `other` ran while `entry` waited. */
static uint64_t overlap(const struct trace_entry *entry, const struct trace_entry *other)
{
    uint64_t from = entry->record.submitted_ns, to = entry->record.begin_ns;

    from = other->record.begin_ns > from ? other->record.begin_ns : from;
    to = other->record.end_ns < to ? other->record.end_ns : to;
    return to > from ? to - from : 0;
}

/* The work that ran longest while this one waited: NULL where it was that of its own client. */
static void find_wait(const struct trace_data *data, unsigned index)
{
    struct trace_entry *entry = &data->entries[index];
    const struct trace_entry *longest = NULL;
    uint64_t most = 0;

    if (entry->record.begin_ns <= entry->record.submitted_ns)
        return;
    entry->waited_ns = entry->record.begin_ns - entry->record.submitted_ns;
    for (unsigned i = index; i > 0 && index - i < SEARCHED_MAX; i--) {
        const struct trace_entry *other = &data->entries[i - 1];

        if (!trace_is_work(other) || !is_same_device(data, entry, other) ||
            overlap(entry, other) <= most)
            continue;
        most = overlap(entry, other);
        longest = other;
    }
    if (longest && !is_same_client(entry, longest))
        entry->waited_for = longest;
}

/* ---- all ---- */

static int take_entries(struct trace_data *data)
{
    unsigned count = 0, begun = 0;

    for (unsigned i = 0; i < data->server_count; i++) {
        data->servers[i].count = count_of(data->files[i]);
        count += data->servers[i].count;
        begun += has_begun(data->files[i]);
    }
    if (!begun)
        return cli_fail("no server has begun; does another trace go on?");
    data->entries = calloc(count + 1, sizeof(*data->entries));
    if (!data->entries)
        return cli_fail("out of memory");
    for (unsigned i = 0; i < data->server_count; i++)
        take_records(data, i);
    qsort(data->entries, data->count, sizeof(*data->entries), compare_records);
    for (unsigned i = 0; i < data->count; i++)
        if (trace_is_work(&data->entries[i]))
            find_wait(data, i);
    return 0;
}

int trace_take(unsigned seconds, long client, const volatile sig_atomic_t *stop,
               struct trace_data *ret_data)
{
    _cleanup_fd_ int fd = -1;
    char line[DAEMON_LINE_MAX];
    int status = daemon_connect(&fd);

    *ret_data = (struct trace_data){.count = 0};
    if (status)
        return status;
    if (client)
        text_format(line, sizeof(line), "trace %u --client %ld", seconds, client);
    else
        text_format(line, sizeof(line), "trace %u", seconds);
    status = command_send_line(fd, line);
    if (status)
        return cli_fail("%s", command_lost(status));
    status = receive_files(fd, ret_data);
    if (!status) {
        wait_for_files(ret_data, fd, seconds, stop);
        status = take_entries(ret_data);
    }
    if (status)
        trace_fini(ret_data);
    return status;
}

void trace_fini(struct trace_data *data)
{
    for (unsigned i = 0; i < data->server_count; i++)
        shm_unmap(data->files[i], TRACE_FILE_SIZE);
    free(data->entries);
    *data = (struct trace_data){.count = 0};
}
