/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon leaves of a server for the next one, and files that are not whole, or not its own.
 */
#include "server_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_record.h"
#include "fd.h"
#include "process_stat.h"
#include "server_process.h"
#include "unit.h"
#include "usage_totals.h"

#define OWNER 4711u

static struct daemon daemon_state;
static struct server_process server;
static char folder[300];
static int listen_fd;

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    memset(&server, 0, sizeof(server));
    memset(usage_totals(), 0, sizeof(struct usage_totals));
    daemon_init(&daemon_state);
    strcpy(daemon_state.paths.pipe, "/tmp/funnel-server-file-XXXXXX");
    strcpy(daemon_state.paths.log, "/nonexistent");
    if (!mkdtemp(daemon_state.paths.pipe))
        return -1;
    snprintf(folder, sizeof(folder), "%.200s/" INSTANCE_SERVERS_NAME, daemon_state.paths.pipe);
    server.daemon = &daemon_state;
    server.uid = OWNER;
    strcpy(server.name, "night");
    list_init(&server.records);
    listen_fd = -1;
    if (mkdir(folder, 0700) || server_file_create(&server, &listen_fd))
        return -1;
    /* The lock of a daemon that was killed is gone; who opens the file would wait for it. */
    return flock(server.file.fd, LOCK_UN);
}

static int teardown(void **state)
{
    char command[400];

    client_records_close(&server);
    server_file_remove(&server);
    fd_close(&listen_fd);
    snprintf(command, sizeof(command), "rm -r %.200s", daemon_state.paths.pipe);
    return system(command);
}

static struct client_record *add(int32_t pid)
{
    const struct server_identity identity = {.pid = pid, .uid = OWNER};
    const struct client_program program = {.uid = OWNER, .executable.inode = 5};
    struct client_record *record = client_record_add(&server, &identity, &program);

    assert_non_null(record);
    client_record_save(record);
    return record;
}

/* As the next daemon opens it; the caller closes its descriptor. */
static int open_file(struct server_file *file)
{
    return server_file_open(file, folder, server.file.name);
}

static void break_at(off_t at, char byte)
{
    assert_int_equal(pwrite(server.file.fd, &byte, 1, at), 1);
}

static void check_read(int expected)
{
    struct server_file file;
    struct saved_server saved;

    assert_int_equal(open_file(&file), 0);
    assert_int_equal(server_file_read(&file, &saved), expected);
    fd_close(&file.fd);
}

static void test_server(void **state)
{
    struct server_file file;
    struct saved_server saved;

    server.limits.sm_centipercent = 3000;
    server_file_save(&server);
    assert_int_equal(open_file(&file), 0);
    assert_int_equal(server_file_read(&file, &saved), 0);
    assert_string_equal(saved.name, "night");
    assert_int_equal(saved.uid, OWNER);
    assert_int_equal(saved.limits.sm_centipercent, 3000);
    assert_string_equal(saved.release, FUNNEL_VERSION);
    fd_close(&file.fd);
}

/* A daemon that is killed while it writes the newer head leaves the older one. */
static void test_half_a_head(void **state)
{
    struct server_file file;
    struct saved_server saved;

    server.limits.sm_centipercent = 3000;
    server_file_save(&server);
    server.limits.sm_centipercent = 4000;
    server_file_save(&server);
    break_at((1 + 4) * 4096 + 200, 'x');
    assert_int_equal(open_file(&file), 0);
    assert_int_equal(server_file_read(&file, &saved), 0);
    assert_int_equal(saved.limits.sm_centipercent, 3000);
    fd_close(&file.fd);
    break_at(1 * 4096 + 200, 'x');
    check_read(-ENODATA);
}

static void test_cut_off(void **state)
{
    for (off_t size = 9 * 4096; size >= 0; size -= 4096) {
        assert_int_equal(ftruncate(server.file.fd, size), 0);
        if (size <= 5 * 4096)
            check_read(-ENODATA);
    }
}

static void test_another_release(void **state)
{
    server_file_save(&server);
    break_at(1 * 4096 + 12, 99);
    break_at(5 * 4096 + 12, 99);
    check_read(-EPROTO);
}

static void test_clients(void **state)
{
    struct client_record *first = add(100), *second = add(101);
    unsigned slot = second->slot;
    struct saved_client saved;

    second->attached = true;
    client_record_save(second);
    assert_int_equal(server_file_read_client(&server.file, slot, &saved), 0);
    assert_true(saved.present && saved.attached && saved.id == second->id);
    assert_int_equal(saved.identity.pid, 101);
    assert_int_equal(saved.program.executable.inode, 5);
    client_record_forget(second);
    assert_int_equal(server_file_read_client(&server.file, slot, &saved), 0);
    assert_false(saved.present);
    assert_int_equal(saved.id, first->id + 1);
    assert_int_equal(add(102)->slot, slot);
    assert_int_equal(server_file_read_client(&server.file, slot + 1, &saved), -ENODATA);
}

static void test_half_a_client(void **state)
{
    struct client_record *record = add(100);
    struct saved_client saved;

    break_at((16 + (off_t)record->slot) * 4096 + 300, 'x');
    assert_int_equal(server_file_read_client(&server.file, record->slot, &saved), -ENODATA);
}

/* Every byte of a client is covered. */
static void test_flipped_bits(void **state)
{
    struct client_record *record = add(100);
    struct saved_client saved;
    off_t at = (16 + (off_t)record->slot) * 4096;

    for (size_t i = 0; i < 32 + sizeof(saved); i += 7) {
        char byte;
        assert_int_equal(pread(server.file.fd, &byte, 1, at + (off_t)i), 1);
        break_at(at + (off_t)i, (char)(byte ^ 1));
        assert_int_not_equal(server_file_read_client(&server.file, record->slot, &saved), 0);
        break_at(at + (off_t)i, byte);
    }
    assert_int_equal(server_file_read_client(&server.file, record->slot, &saved), 0);
}

static void test_process(void **state)
{
    struct saved_process saved;

    assert_int_equal(server_file_read_process(&server.file, &saved), -ENODATA);
    server_file_enter_process(server.file.fd);
    assert_int_equal(server_file_read_process(&server.file, &saved), 0);
    assert_int_equal(saved.pid, getpid());
    assert_true(saved.started == process_stat_read(getpid()).started && saved.started);
    assert_true(process_stat_read(INT32_MAX).started == 0);
}

static void test_files_of_others(void **state)
{
    char path[400], other[400];
    struct server_file file;

    snprintf(path, sizeof(path), "%.300s/%s", folder, server.file.name);
    snprintf(other, sizeof(other), "%s/other", folder);
    assert_int_equal(chmod(path, 0620), 0);
    assert_int_equal(open_file(&file), -EPERM);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(open_file(&file), -ELOOP);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_not_equal(open_file(&file), 0);
    assert_int_equal(rmdir(path), 0);
    if (geteuid() == 0) {
        assert_int_equal(rename(other, path), 0);
        assert_int_equal(chown(path, OWNER, OWNER), 0);
        assert_int_equal(open_file(&file), -EPERM);
    }
}

/* Lines that a server writes while no daemon reads are there for the next one. */
static void test_log(void **state)
{
    int reader = -1, writer = -1;
    char text[16];

    assert_int_equal(server_file_open_log(&server, &reader, &writer), 0);
    fd_close(&reader);
    assert_int_equal(write(writer, "a line\n", 7), 7);
    assert_int_equal(server_file_open_log(&server, &reader, NULL), 0);
    assert_int_equal(read(reader, text, sizeof(text)), 7);
    fd_close(&writer);
    assert_int_equal(read(reader, text, sizeof(text)), 0);
    fd_close(&reader);
}

static void test_connection(void **state)
{
    int fd = -1;

    assert_int_equal(server_file_connect(&server, &fd), 0);
    fd_close(&fd);
    fd_close(&listen_fd);
    assert_int_equal(server_file_connect(&server, &fd), -ECONNREFUSED);
    server_file_remove(&server);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

int main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_server),          WITH_SERVER(test_half_a_head),
        WITH_SERVER(test_cut_off),         WITH_SERVER(test_another_release),
        WITH_SERVER(test_clients),         WITH_SERVER(test_half_a_client),
        WITH_SERVER(test_flipped_bits),    WITH_SERVER(test_process),
        WITH_SERVER(test_files_of_others), WITH_SERVER(test_log),
        WITH_SERVER(test_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
