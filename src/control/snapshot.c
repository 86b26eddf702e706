/* SPDX-License-Identifier: Apache-2.0 */
/* See snapshot.h. */
#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "command_client.h"
#include "fd.h"
#include "text.h"

/* More of a kind than any daemon has. */
#define ROWS_MAX (1u << 16)

/* Appends one row to an array that doubles: 0, -ENOMEM or -E2BIG. */
static int append_row(void **rows, unsigned *count, const void *row, size_t size)
{
    bool full = (*count & (*count - 1)) == 0;

    if (*count == ROWS_MAX)
        return -E2BIG;
    void *grown = full ? realloc(*rows, (*count ? *count * 2 : 1) * size) : *rows;

    if (!grown)
        return -ENOMEM;
    *rows = grown;
    memcpy((char *)grown + *count * size, row, size);
    ++*count;
    return 0;
}

/* A client follows its server, so there is one. */
static int append_client(struct snapshot *snapshot, const struct command_client *client)
{
    if (snapshot->server_count == 0)
        return -EPROTO;
    return append_row((void **)&snapshot->clients, &snapshot->client_count, client,
                      sizeof(*client));
}

static int take_part(struct snapshot *snapshot, int kind, const union command_any *part)
{
    switch (kind) {
    case COMMAND_DAEMON:
        snapshot->daemon = part->daemon;
        return 0;
    case COMMAND_SERVER:
        return append_row((void **)&snapshot->servers, &snapshot->server_count, &part->server,
                          sizeof(part->server));
    case COMMAND_CLIENT:
        return append_client(snapshot, &part->client);
    case COMMAND_LIMIT:
        return append_row((void **)&snapshot->limits, &snapshot->limit_count, &part->limit,
                          sizeof(part->limit));
    case COMMAND_QUOTA:
        return append_row((void **)&snapshot->quotas, &snapshot->quota_count, &part->quota,
                          sizeof(part->quota));
    case COMMAND_DONE:
        return part->done.status ? -EIO : 0;
    }
    return kind < 0 ? kind : 0;
}

/* Milliseconds until then, at least 0; -1 for a deadline of 0, which is none. */
static int time_left(uint64_t deadline_ns)
{
    uint64_t now = clock_ns();

    if (!deadline_ns)
        return -1;
    return now < deadline_ns ? (int)((deadline_ns - now) / NS_PER_MS) : 0;
}

static int receive_parts(int fd, uint64_t deadline_ns, struct snapshot *snapshot)
{
    union command_any *part = malloc(sizeof(*part));
    int error = part ? command_send_query(fd) : -ENOMEM;
    int kind = 0;

    while (!error && kind != COMMAND_DONE) {
        size_t length;

        kind = command_receive_within(fd, time_left(deadline_ns), part, &length);
        error = take_part(snapshot, kind, part);
    }
    free(part);
    return error;
}

static int snapshot_read_until(int fd, uint64_t deadline_ns, struct snapshot *ret_snapshot)
{
    struct snapshot snapshot = {.server_count = 0};
    int error = receive_parts(fd, deadline_ns, &snapshot);

    if (error)
        snapshot_fini(&snapshot);
    else
        *ret_snapshot = snapshot;
    return error;
}

int snapshot_read(int fd, struct snapshot *ret_snapshot)
{
    return snapshot_read_until(fd, 0, ret_snapshot);
}

int snapshot_take_within(const struct paths *paths, int timeout_ms, struct snapshot *ret_snapshot)
{
    uint64_t deadline = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;
    int error = command_connect_within(paths, HELLO_COMMAND, timeout_ms, &fd, reason);

    return error ? error : snapshot_read_until(fd, deadline, ret_snapshot);
}

int snapshot_take(const struct paths *paths, struct snapshot *ret_snapshot, char *ret_reason)
{
    _cleanup_fd_ int fd = -1;
    int error = command_connect(paths, &fd, ret_reason);

    if (error)
        return error;
    error = snapshot_read(fd, ret_snapshot);
    if (error)
        text_copy(ret_reason, COMMAND_REASON_MAX, command_lost(error));
    return error;
}

void snapshot_fini(struct snapshot *snapshot)
{
    free(snapshot->servers);
    free(snapshot->clients);
    free(snapshot->limits);
    free(snapshot->quotas);
    *snapshot = (struct snapshot){.server_count = 0};
}

const struct command_server *snapshot_server_of(const struct snapshot *snapshot,
                                                const struct command_client *client)
{
    for (unsigned i = 0; i < snapshot->server_count; i++)
        if (snapshot->servers[i].pid == client->server_pid)
            return &snapshot->servers[i];
    return &snapshot->servers[0];
}

const struct command_client *snapshot_find_client(const struct snapshot *snapshot,
                                                  const struct command_client *client)
{
    for (unsigned i = 0; snapshot && i < snapshot->client_count; i++)
        if (snapshot->clients[i].server_pid == client->server_pid &&
            snapshot->clients[i].row.id == client->row.id)
            return &snapshot->clients[i];
    return NULL;
}

const char *snapshot_state_name(const struct command_server *server)
{
    if (server->pid == 0)
        return "stopped";
    if (server->stopping)
        return "ending";
    if (server->state == SERVER_INITIALIZING)
        return "starting";
    if (!server->responding)
        return "silent";
    return server->state == SERVER_ACTIVE ? "active" : "fault";
}

const char *snapshot_driver_name(uint32_t driver)
{
    if (driver == SERVER_DRIVER_CUDA)
        return "cuda";
    return driver == SERVER_DRIVER_SOFT ? "soft" : "unknown";
}

uint64_t snapshot_memory_of(const struct command_client *client)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        bytes += client->row.memory_used[i];
    return bytes;
}
