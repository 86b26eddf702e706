/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts of a server for the next daemon, if this one is killed. Each server has a file, in a
 * directory of the pipe directory that is the daemon's alone. The socket at which the server waits
 * stands beside it. The daemon believes this file, as it has written it itself, and not the server.
 *
 * The daemon may be killed at any moment. So a part of the file is written before the server hears
 * of what stands in it, and is whole or has a wrong hash.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client_limits.h"
#include "client_program.h"
#include "lane_choice.h"
#include "server_protocol.h"

struct client_record;
struct server_process;

#define SERVER_FILE_NAME_MAX 16

struct server_file {
    bool is_open;
    int fd;
    char name[SERVER_FILE_NAME_MAX]; /* of the file; beside it are NAME.socket and NAME.log */
    uint64_t heads;                  /* how often the head has been written */
    bool is_failing;                 /* control.log says that the file cannot be written */
    uint64_t used[SERVER_CLIENTS_MAX / 64];
};

/* The record of the server itself. */
struct saved_server {
    char release[32];
    char name[SERVER_NAME_MAX];
    char devices[256];
    uint32_t uid, gid, role, owner;
    int64_t since;
    struct limits limits;
};

/* And of each client. The number of the last one stays when it has gone. */
struct saved_client {
    uint32_t id;
    uint32_t present; /* the client has not gone, or has not been accounted for */
    uint32_t attached;
    uint64_t window_base; /* client_record.h */
    int64_t ended;        /* wall clock, seconds: it has gone, and its line may be in usage.jsonl */
    uint64_t given_ns;    /* client_record.h */
    struct server_identity identity;
    struct client_program program;
    struct server_client_gone last;
    uint64_t has_limits; /* client_record.h */
    struct own_limits limits;
    uint64_t is_of_job; /* client_record.h, and so is the next */
    struct server_usage before;
    struct lane_choice choice; /* with the token, also where nothing has been chosen */
};

/* The process of a server: a number is given to another one later, but not with the same start. */
struct saved_process {
    int32_t pid; /* 0 = there is none yet */
    uint32_t reserved;
    uint64_t started; /* clock ticks since the machine has started, as in proc(5) */
};

/* ---- writing ---- */

/* Makes the file, the pipe and the socket of a server that is about to be started. Returns 0 with
 * the listening socket, which is the caller's, or -errno. */
int server_file_create(struct server_process *server, int *ret_listen_fd);

/* For the child, before it becomes the server: enters itself. */
void server_file_enter_process(int fd);

void server_file_save(struct server_process *server);
void server_file_save_devices(struct server_process *server);

/* A new client gets its place: false when there is none. */
bool server_file_place_client(struct client_record *record);
void server_file_save_client(struct client_record *record);
void server_file_forget_client(struct client_record *record);

/* The server has ended, or cannot be taken over: removes all that has the file's name. */
void server_file_remove(struct server_process *server);
void server_file_remove_name(const char *directory, const char *name);

/* ---- reading, by the next daemon ---- */

/* Opens a file that a daemon has left, and waits for a child that may still be entering itself in
 * it. Returns 0 with file->fd open, or -errno. -EPERM: others than the daemon's user own or reach
 * the file. */
int server_file_open(struct server_file *file, const char *directory, const char *name);

/* 0; -ENODATA where that part was not written, or was cut off; -EPROTO where it is of another
 * release. Texts are ended. */
int server_file_read(struct server_file *file, struct saved_server *ret_server);
int server_file_read_devices(const struct server_file *file, struct server_ready *ret_ready);
int server_file_read_client(const struct server_file *file, unsigned slot,
                            struct saved_client *ret_client);
int server_file_read_process(const struct server_file *file, struct saved_process *ret_process);

/* Connects to the server that waits there: 0 or -errno. The connection asks for senders. */
int server_file_connect(const struct server_process *server, int *ret_fd);

/* ---- both ---- */

/* The named pipe that is the server's log: the end that is read, and with `ret_write_fd` the
 * server's. Who writes has both ends in one descriptor, so that lines stay there while no daemon
 * reads. The descriptors are the caller's. 0 or -errno. */
int server_file_open_log(const struct server_process *server, int *ret_read_fd, int *ret_write_fd);
