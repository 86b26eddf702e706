/* SPDX-License-Identifier: Apache-2.0 */
/* See takeover.h. */
#include "takeover.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claim_table.h"
#include "claims.h"
#include "client_record.h"
#include "clock.h"
#include "fd.h"
#include "journal.h"
#include "process_stat.h"
#include "server_handlers.h"
#include "shm.h"
#include "text.h"
#include "usage_journal.h"
#include "window_claim.h"

/* ---- its process ---- */

/* The descriptor comes first. What is read afterwards is of the process that it belongs to, or that
 * has ended. Returns 0. -ESRCH: it has ended. -EPERM: it is another user's now. */
static int find_process(struct server_process *server, const struct saved_process *saved)
{
    char path[40];
    struct stat status;
    uint64_t started;

    if (saved->pid <= 0)
        return -ESRCH;
    server->process_fd = (int)syscall(SYS_pidfd_open, saved->pid, 0);
    if (server->process_fd < 0)
        return -errno;
    text_format(path, sizeof(path), "/proc/%d", (int)saved->pid);
    started = process_stat_read(saved->pid).started;
    if (started != saved->started || stat(path, &status) || process_has_ended(server->process_fd))
        return -ESRCH;
    /* One that could not become its user yet, or is not dumpable, is root's. */
    return status.st_uid == server->uid || status.st_uid == 0 || status.st_uid == geteuid()
               ? 0
               : -EPERM;
}

static void on_ended(evutil_socket_t fd, short what, void *context)
{
    struct server_process *server = context;
    int status = SERVER_EXIT_UNKNOWN;

    /* After a reload it is a child of this process. */
    if (waitpid(server->pid, &status, WNOHANG) == 0)
        return;
    server_process_reap(server->daemon, server->pid, status);
}

static int watch_process(struct server_process *server)
{
    server->ended =
        event_new(server->daemon->base, server->process_fd, EV_READ | EV_PERSIST, on_ended, server);
    return server->ended && !event_add(server->ended, NULL) ? 0 : -ENOMEM;
}

/* ---- its connection ---- */

static void send_resume(struct server_process *server, enum server_message kind, int fd)
{
    struct server_header message; /* which is all of either */

    server_message_init(&message, kind, 0);
    connection_send(&server->connection, &message, sizeof(message), fd);
}

/* An answer to the dead daemon must not pass for one to this. */
static void choose_numbers(struct server_process *server)
{
    server->last_request = (uint32_t)clock_ns();
    server->told_slice.us = UINT64_MAX;
}

static int resume(struct server_process *server)
{
    int claims_fd = claim_table_of(server->uid), fd = -1;
    int error = server_file_connect(server, &fd);

    if (error) {
        fd_close(&fd);
        return error;
    }
    error = connection_open(&server->connection, server->daemon->base, fd,
                            &server_connection_handlers, server);
    if (!error)
        error = server_log_open(server, NULL);
    if (!error)
        error = watch_process(server);
    if (error)
        return error;
    server->connection.sender = server->pid;
    choose_numbers(server);
    server->resuming = true;
    if (claims_fd >= 0)
        send_resume(server, SERVER_CLAIMS, dup(claims_fd));
    send_resume(server, SERVER_RESUME, -1);
    server_process_set_deadline(server, RESUME_TIMEOUT_S);
    return 0;
}

/* ---- its record ---- */

static void read_clients(struct server_process *server)
{
    struct saved_client saved;

    for (unsigned slot = 0; slot < SERVER_CLIENTS_MAX; slot++) {
        if (server_file_read_client(&server->file, slot, &saved))
            continue;
        if (saved.id > server->last_client)
            server->last_client = saved.id;
        struct client_record *record =
            saved.present ? client_record_add_saved(server, slot, &saved) : NULL;
        if (record && record->ended)
            client_record_end_again(record);
    }
}

static struct server_process *read_server(struct daemon *daemon, struct server_file *state,
                                          const struct saved_server *saved)
{
    struct server_route route = {.uid = saved->uid, .gid = saved->gid, .owner = saved->owner};

    text_copy(route.name, sizeof(route.name), saved->name);
    text_copy(route.devices, sizeof(route.devices), saved->devices);
    enum server_role role =
        saved->role <= SERVER_REPLACED ? (enum server_role)saved->role : SERVER_REPLACED;
    struct server_process *server = server_process_create(daemon, &route, role);
    if (!server)
        return NULL;
    server->since = saved->since;
    server->limits = saved->limits;
    if (server->limits.device_count > DEVICE_LIMITS_MAX)
        server->limits.device_count = DEVICE_LIMITS_MAX;
    server->file = *state;
    if (server_file_read_devices(state, &server->ready))
        server->ready = (struct server_ready){.device_count = 0};
    list_append(&daemon->servers, &server->link);
    read_clients(server);
    return server;
}

void takeover_enter_claims(const struct server_process *server)
{
    struct claims *claims = claim_table_map(server->uid);

    list_for_each (struct client_record, record, &server->records, link)
        if (record->window_base)
            window_claim_set(claims, record->token, record->window_base, record->identity.pid);
    shm_unmap(claims, sizeof(*claims));
}

/* The server's last report says how much it has used. */
static void give_up(struct server_process *server, int error)
{
    if (error == -ENODATA)
        journal("A server of %s cannot be taken over: its file does not say which process it is. "
                "It has not begun, or it ends after its %u programs",
                server->name, server->handed_over);
    else if (error == -ESRCH)
        journal("Server %d of %s has ended while no daemon ran, with %u clients", (int)server->pid,
                server->name, server->handed_over);
    else
        journal("Server %d of %s cannot be taken over: %s. Its %u programs go on without limits of "
                "the daemon, and it ends after them",
                (int)server->pid, server->name, strerror(-error), server->handed_over);
    takeover_enter_claims(server);
    server_process_free(server);
}

/* A program of this release could not talk to a server of another one. */
static void dismiss_old_release(struct server_process *server, const char *release)
{
    if (!strcmp(release, FUNNEL_VERSION))
        return;
    journal("Server %d is of release %s, and this daemon of %s: it keeps its programs, and those "
            "that follow go to another server",
            (int)server->pid, release, FUNNEL_VERSION);
    server->role = SERVER_REPLACED;
    server_file_save(server);
}

static void take_over(struct server_process *server, const char *release)
{
    struct saved_process process = {.pid = 0};
    int error = server_file_read_process(&server->file, &process);

    server->pid = process.pid;
    if (!error)
        error = find_process(server, &process);
    if (!error)
        error = resume(server);
    if (error) {
        give_up(server, error);
        return;
    }
    journal("Server %d of %s runs on with %u clients, and is taken over", (int)server->pid,
            server->name, server->handed_over);
    dismiss_old_release(server, release);
}

/* ---- all of them ---- */

static void take_over_file(struct daemon *daemon, const char *directory, const char *name)
{
    struct server_file state;
    struct saved_server saved;
    struct server_process *server = NULL;
    int error = server_file_open(&state, directory, name);

    if (error) {
        journal("%s/%s is no file of the daemon's: %s", directory, name, strerror(-error));
        return;
    }
    error = server_file_read(&state, &saved);
    if (!error)
        server = read_server(daemon, &state, &saved);
    if (server) {
        take_over(server, saved.release);
        return;
    }
    journal("A server of an earlier daemon cannot be taken over (%s/%s: %s); it ends after its "
            "last client",
            directory, name,
            error == -EPROTO    ? "it is of another release"
            : error == -ENODATA ? "what stands there is not whole"
                                : "out of memory");
    fd_close(&state.fd);
    server_file_remove_name(directory, name);
}

static bool is_state_name(const char *name)
{
    uint64_t number;

    return strlen(name) < SERVER_FILE_NAME_MAX && !text_to_u64(name, &number);
}

void takeover_begin(struct daemon *daemon)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *directory = path_join(daemon->paths.pipe, INSTANCE_SERVERS_NAME, path, sizeof(path))
                         ? NULL
                         : opendir(path);

    if (!directory)
        return;
    usage_journal_mend(daemon);
    while ((entry = readdir(directory)))
        if (is_state_name(entry->d_name))
            take_over_file(daemon, path, entry->d_name);
    closedir(directory);
}

/* ---- its answer ---- */

static bool is_named(const struct server_resumed *resumed, uint32_t count, uint32_t id)
{
    for (uint32_t i = 0; i < count; i++)
        if (resumed->client[i] == id)
            return true;
    return false;
}

/* The dead daemon was killed before it could hand them over. */
static void forget_strangers(struct server_process *server, const struct server_resumed *resumed)
{
    uint32_t count = resumed->count < SERVER_CLIENTS_MAX ? resumed->count : SERVER_CLIENTS_MAX;

    list_for_each_safe (struct client_record, record, &server->records, link) {
        if (is_named(resumed, count, record->id))
            continue;
        journal_with(LOG_ABOUT(record->identity.pid),
                     "Client %d (id %u) of server %d did not come there", record->identity.pid,
                     record->id, (int)server->pid);
        client_record_forget(record);
    }
}

void takeover_resumed(struct server_process *server, const struct server_resumed *resumed)
{
    forget_strangers(server, resumed);
    server->resuming = false;
    journal("Server %d of %s is taken over, with %u clients", (int)server->pid, server->name,
            server->handed_over);
    if (resumed->leaving)
        server->stopping = server->dismissed = true;
}
