/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's own facts about the clients that a server has been given. A server names a client
 * by the number that the daemon has given it, and says what the client does. Who the client is
 * stands here alone: user, group, program, process, and since when. So a server that lies can speak
 * of its own clients only, and cannot make anyone else of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client_program.h"
#include "lane_choice.h"
#include "lane_watch.h"
#include "list.h"
#include "server_file.h"
#include "server_protocol.h"

/* Far more than a server takes clients: one that never reports their end costs no more than this.
 */
#define CLIENT_RECORDS_MAX SERVER_CLIENTS_MAX

struct daemon;
struct server_process;

struct client_record {
    struct list link; /* in server->records */
    struct server_process *server;
    uint32_t id; /* never 0, unique in the server's life */
    struct server_identity identity;
    struct client_program program;
    uint8_t token[HELLO_TOKEN_SIZE]; /* of its hello: the same after a move */
    bool has_limits;                 /* an operator has given this client limits of its own: */
    struct own_limits limits;
    unsigned slot;           /* where it stands in the server's state file */
    uint64_t given_ns;       /* clock_ns() when the server got it */
    int64_t ended;           /* wall clock, seconds; 0 = it has not */
    bool attached;           /* the server has said so */
    uint64_t window_base;    /* of its addresses, as the server has said; 0 = not known */
    bool has_moved;          /* to another lane: its end here is not that of the program */
    bool is_returning;       /* from the spare lane: has been ordered, and is only once */
    bool is_of_job;          /* of several processes: stays with the others (hello.h) */
    uint32_t last_request;   /* the last question of which the server has sent the client's row */
    uint32_t class;          /* enum client_class, as it came; 0 = an earlier daemon took it */
    struct client_pace pace; /* lane_watch.h */
    struct server_client_gone last; /* what it had used when the server told of it last */
    struct server_usage before;     /* what it has used in the lanes that it has left */
};

/* Enters a client that the server is about to get; NULL when there is no memory, or when the server
 * has so many already. */
struct client_record *client_record_add(struct server_process *server,
                                        const struct server_identity *identity,
                                        const struct client_program *program);

/* The client's hello has come. A client that comes from another server keeps its number and its
 * time of arrival. */
void client_record_continue(struct client_record *record, const struct hello *hello);

/* A client of that token, which is not all zero, in any server; or NULL. */
struct client_record *client_record_find_token(const struct daemon *daemon,
                                               const uint8_t token[HELLO_TOKEN_SIZE]);

/* Enters one that an earlier daemon has given to the server: NULL when there is no memory. */
struct client_record *client_record_add_saved(struct server_process *server, unsigned slot,
                                              const struct saved_client *saved);

/* The server is about to hear of the client, or has said something of it that must not be lost. */
void client_record_save(struct client_record *record);

/* Whether a client is called by that number in commands: its process id or, in another PID
 * namespace, where process ids are not known, its ID. The second: whether some server has it. */
bool client_record_is_called(const struct client_record *record, pid_t number);
bool client_record_exists(const struct daemon *daemon, pid_t number);

/* The client of that number, or NULL when the server has not been given one. */
struct client_record *client_record_find(struct server_process *server, uint32_t id);

/* What is chosen for the program, also before it came to this server. */
struct lane_choice client_record_choice(const struct client_record *record);

/* Takes over what the server says that the client has used, as far as that can be. */
void client_record_note(struct client_record *record, const struct server_client_gone *message);

/* Puts who the client is into a row of status, bounds its figures, and adds what it has used in
 * other lanes. False for a row that the
 * server has sent before in its answer to the same question. */
bool client_record_complete(struct client_record *record, struct server_status_row *row);

/* The client has gone: its use enters the journal if it had attached. */
void client_record_end(struct client_record *record, const struct server_client_gone *message);

/* The server has never had the client, or the client's end is in the journal already. */
void client_record_forget(struct client_record *record);

/* An earlier daemon was killed while it wrote down that the client has gone. */
void client_record_end_again(struct client_record *record);

/* The server has died, and its clients end with what it told of them last. */
void client_records_close(struct server_process *server);
