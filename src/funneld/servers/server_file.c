/* SPDX-License-Identifier: Apache-2.0 */
/* See server_file.h. */
#include "server_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client_record.h"
#include "fd.h"
#include "hash.h"
#include "journal.h"
#include "own_file.h"
#include "process_stat.h"
#include "server_process.h"
#include "sock.h"
#include "text.h"

#define MAGIC 0x31535346u /* "FSS1" */

/* The kernel writes a page as a whole, also for a process that is killed meanwhile. What is longer
 * and changes is written to two places in turn. */
#define PAGE 4096
#define PROCESS_AT 0
#define HEAD_AT(turn) (PAGE + ((turn)&1) * 4 * PAGE)
#define DEVICES_AT (9 * PAGE)
#define CLIENT_AT(slot) ((16 + (off_t)(slot)) * PAGE)
#define PART_MAX (4 * PAGE)

#define NAMES_MAX 1024u /* more than there are servers */
#define ENTERING_MS 2000

/* In front of each part. */
struct part {
    uint64_t hash; /* of all that follows, this structure included */
    uint32_t magic;
    uint32_t version; /* of the protocol with servers, whose structures stand in the file */
    uint64_t heads;   /* how often the head had been written */
    uint64_t size;    /* of what follows */
};

_Static_assert(sizeof(struct part) + sizeof(struct saved_server) <= PART_MAX, "two heads");
_Static_assert(sizeof(struct part) + sizeof(struct server_ready) <= 7 * PAGE, "devices");
_Static_assert(sizeof(struct part) + sizeof(struct saved_client) <= PAGE, "a client is one page");

union part_bytes {
    struct part part;
    char bytes[PART_MAX];
};

static uint64_t hash_of(const union part_bytes *whole)
{
    const size_t skipped = sizeof(whole->part.hash);

    return hash_bytes(whole->bytes + skipped, sizeof(whole->part) - skipped + whole->part.size);
}

/* 0 or -errno; without the disk's own error, which only a crash of the machine would need. */
static int write_part(int fd, off_t at, uint64_t heads, const void *data, size_t size)
{
    union part_bytes whole = {
        .part = {.magic = MAGIC, .version = SERVER_PROTOCOL_VERSION, .heads = heads, .size = size}};

    memcpy(whole.bytes + sizeof(whole.part), data, size);
    whole.part.hash = hash_of(&whole);
    size += sizeof(whole.part);
    ssize_t done = pwrite(fd, whole.bytes, size, at);
    return done == (ssize_t)size ? 0 : done < 0 ? -errno : -ENOSPC;
}

static int read_part(int fd, off_t at, void *data, size_t size, uint64_t *ret_heads)
{
    union part_bytes whole = {0};
    ssize_t got = pread(fd, whole.bytes, sizeof(whole), at);

    if (got < (ssize_t)sizeof(whole.part) || whole.part.magic != MAGIC)
        return -ENODATA;
    if (whole.part.version != SERVER_PROTOCOL_VERSION || whole.part.size != size)
        return -EPROTO;
    if (got < (ssize_t)(sizeof(whole.part) + size) || whole.part.hash != hash_of(&whole))
        return -ENODATA;
    memcpy(data, whole.bytes + sizeof(whole.part), size);
    *ret_heads = whole.part.heads;
    return 0;
}

/* ---- writing ---- */

static void save_bytes(struct server_process *server, off_t at, const void *data, size_t size)
{
    struct server_file *file = &server->file;
    int error = file->is_open ? write_part(file->fd, at, file->heads, data, size) : 0;

    if (error && !file->is_failing)
        journal("What another daemon would have to know of server %d cannot be written (%s): if "
                "this daemon is killed, programs of the server may be missing in accounts",
                (int)server->pid, strerror(-error));
    file->is_failing = error != 0;
}

static int directory_of(const struct server_process *server, char path[PATH_MAX])
{
    return path_join(server->daemon->paths.pipe, INSTANCE_SERVERS_NAME, path, PATH_MAX);
}

static int path_beside(const char *directory, const char *name, const char *suffix,
                       char path[PATH_MAX])
{
    char whole[SERVER_FILE_NAME_MAX + 8];

    text_format(whole, sizeof(whole), "%s%s", name, suffix);
    return path_join(directory, whole, path, PATH_MAX);
}

/* The first name that is free. */
static int make_file(struct server_file *file, const char *directory)
{
    char path[PATH_MAX];

    for (unsigned number = 1; number <= NAMES_MAX; number++) {
        text_format(file->name, sizeof(file->name), "%u", number);
        int error = path_join(directory, file->name, path, sizeof(path));
        if (error)
            return error;
        file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file->fd >= 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -ENOSPC;
}

/* An address of a socket is short, and the pipe directory's path need not be. */
static int with_socket(const struct server_process *server, int (*call)(const char *, int *),
                       int *ret_fd)
{
    char directory[PATH_MAX], short_path[64], path[PATH_MAX];
    int error = directory_of(server, directory);
    _cleanup_fd_ int folder = error ? -1 : open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return error ? error : -errno;
    text_format(short_path, sizeof(short_path), "/proc/self/fd/%d", folder);
    error = path_beside(short_path, server->file.name, ".socket", path);
    return error ? error : call(path, ret_fd);
}

static int listen_at(const char *path, int *ret_fd)
{
    return sock_listen(path, 0600, ret_fd);
}

int server_file_connect(const struct server_process *server, int *ret_fd)
{
    int error = with_socket(server, sock_connect, ret_fd);

    return error ? error : sock_ask_sender(*ret_fd);
}

static int make_log(const struct server_process *server)
{
    char directory[PATH_MAX], path[PATH_MAX];
    int error = directory_of(server, directory);

    if (!error)
        error = path_beside(directory, server->file.name, ".log", path);
    return error ? error : mkfifo(path, 0600) ? -errno : 0;
}

int server_file_open_log(const struct server_process *server, int *ret_read_fd, int *ret_write_fd)
{
    const int flags = O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
    char directory[PATH_MAX], path[PATH_MAX];
    int error = directory_of(server, directory);

    if (!error)
        error = path_beside(directory, server->file.name, ".log", path);
    if (error)
        return error;
    *ret_read_fd = open(path, O_RDONLY | flags);
    if (ret_write_fd && *ret_read_fd >= 0)
        *ret_write_fd = open(path, O_RDWR | flags);
    if (*ret_read_fd >= 0 && (!ret_write_fd || *ret_write_fd >= 0))
        return 0;
    error = -errno;
    fd_close(ret_read_fd);
    return error;
}

int server_file_create(struct server_process *server, int *ret_listen_fd)
{
    struct server_file *file = &server->file;
    char directory[PATH_MAX];
    int error = directory_of(server, directory);

    if (!error)
        error = make_file(file, directory);
    if (error)
        return error;
    file->is_open = true;
    /* Until the child has become the server, which closes its copy. */
    if (flock(file->fd, LOCK_SH | LOCK_NB))
        error = -errno;
    if (!error)
        error = make_log(server);
    if (!error)
        error = with_socket(server, listen_at, ret_listen_fd);
    if (error)
        server_file_remove(server);
    server_file_save(server);
    return error;
}

void server_file_enter_process(int fd)
{
    const struct saved_process process = {.pid = getpid(),
                                          .started = process_stat_read(getpid()).started};

    write_part(fd, PROCESS_AT, 0, &process, sizeof(process));
}

void server_file_save(struct server_process *server)
{
    struct saved_server saved = {.uid = server->uid,
                                 .gid = server->gid,
                                 .role = server->role,
                                 .owner = server->owner,
                                 .since = server->since,
                                 .limits = server->limits};

    text_copy(saved.release, sizeof(saved.release), FUNNEL_VERSION);
    text_copy(saved.name, sizeof(saved.name), server->name);
    text_copy(saved.devices, sizeof(saved.devices), server->devices);
    save_bytes(server, HEAD_AT(++server->file.heads), &saved, sizeof(saved));
}

void server_file_save_devices(struct server_process *server)
{
    save_bytes(server, DEVICES_AT, &server->ready, sizeof(server->ready));
}

/* ---- clients ---- */

bool server_file_place_client(struct client_record *record)
{
    uint64_t *used = record->server->file.used;

    for (unsigned i = 0; i < SERVER_CLIENTS_MAX / 64; i++) {
        if (!~used[i])
            continue;
        unsigned bit = (unsigned)__builtin_ctzll(~used[i]);
        used[i] |= 1ull << bit;
        record->slot = i * 64 + bit;
        return true;
    }
    return false;
}

static void save_client(struct client_record *record, bool present)
{
    struct saved_client saved = {.id = record->id,
                                 .present = present,
                                 .attached = record->attached,
                                 .window_base = record->window_base,
                                 .ended = record->ended,
                                 .given_ns = record->given_ns,
                                 .identity = record->identity,
                                 .program = record->program,
                                 .last = record->last,
                                 .has_limits = record->has_limits,
                                 .limits = record->limits,
                                 .is_of_job = record->is_of_job,
                                 .before = record->before,
                                 .choice = client_record_choice(record)};

    memcpy(saved.choice.token, record->token, sizeof(saved.choice.token));
    save_bytes(record->server, CLIENT_AT(record->slot), &saved, sizeof(saved));
}

void server_file_save_client(struct client_record *record)
{
    save_client(record, true);
}

void server_file_forget_client(struct client_record *record)
{
    save_client(record, false);
    record->server->file.used[record->slot / 64] &= ~(1ull << record->slot % 64);
}

void server_file_remove_name(const char *directory, const char *name)
{
    static const char *const suffixes[] = {".socket", ".log", ""};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
        if (!path_beside(directory, name, suffixes[i], path))
            unlink(path);
}

void server_file_remove(struct server_process *server)
{
    struct server_file *file = &server->file;
    char directory[PATH_MAX];

    if (!file->is_open)
        return;
    if (!directory_of(server, directory))
        server_file_remove_name(directory, file->name);
    fd_close(&file->fd);
    file->is_open = false;
}

/* ---- reading ---- */

/* A child that a daemon has forked as its last act enters itself within microseconds. */
static void await_child(int fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < ENTERING_MS && flock(fd, LOCK_EX | LOCK_NB); i++)
        nanosleep(&pause, NULL);
    flock(fd, LOCK_UN);
}

int server_file_open(struct server_file *file, const char *directory, const char *name)
{
    char path[PATH_MAX];
    int error = path_join(directory, name, path, sizeof(path));

    *file = (struct server_file){.fd = -1};
    if (!text_copy(file->name, sizeof(file->name), name))
        return -ENAMETOOLONG;
    if (error)
        return error;
    file->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file->fd < 0)
        return -errno;
    error = own_file_check(file->fd);
    if (error) {
        fd_close(&file->fd);
        return error;
    }
    await_child(file->fd);
    file->is_open = true;
    return 0;
}

/* The newer of the two. */
int server_file_read(struct server_file *file, struct saved_server *ret_server)
{
    struct saved_server other;
    uint64_t heads = 0, of_other = 0;
    int error = read_part(file->fd, HEAD_AT(0), ret_server, sizeof(*ret_server), &heads);
    int error_of_other = read_part(file->fd, HEAD_AT(1), &other, sizeof(other), &of_other);

    if (!error_of_other && (error || of_other > heads))
        *ret_server = other;
    if (error && error_of_other)
        return error == -EPROTO ? error : error_of_other;
    file->heads = heads > of_other ? heads : of_other;
    ret_server->release[sizeof(ret_server->release) - 1] = '\0';
    ret_server->name[sizeof(ret_server->name) - 1] = '\0';
    ret_server->devices[sizeof(ret_server->devices) - 1] = '\0';
    return 0;
}

int server_file_read_devices(const struct server_file *file, struct server_ready *ret_ready)
{
    uint64_t heads;

    return read_part(file->fd, DEVICES_AT, ret_ready, sizeof(*ret_ready), &heads);
}

int server_file_read_client(const struct server_file *file, unsigned slot,
                            struct saved_client *ret_client)
{
    uint64_t heads;

    return read_part(file->fd, CLIENT_AT(slot), ret_client, sizeof(*ret_client), &heads);
}

int server_file_read_process(const struct server_file *file, struct saved_process *ret_process)
{
    uint64_t heads;

    return read_part(file->fd, PROCESS_AT, ret_process, sizeof(*ret_process), &heads);
}
