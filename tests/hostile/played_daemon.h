/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose daemon is the test: it gives the server clients and orders, and reads its answers.
 * What fails ends the test.
 */
#pragma once

#include <sys/types.h>

#include "peer.h"
#include "server_protocol.h"

struct daemon {
    int control;
    pid_t pid;
    char log[64];
    int claims;
    uint32_t clients; /* the number of the last */
    uint32_t class;   /* enum client_class of those that come; 0 = none */
};

/* Of a test: *state becomes a daemon whose server is ready. FUNNEL_TEST_SERVER names the program,
 * and FUNNEL_SOFT_DEVICES its devices; by default there is one of 1 GiB. */
int daemon_setup(void **state);
int daemon_teardown(void **state);

/* For another server after daemon_kill_server(). */
void daemon_start_server(struct daemon *daemon);
void daemon_kill_server(struct daemon *daemon);

/* The next message but heartbeats and reports of use, which is of that kind. */
void daemon_receive(struct daemon *daemon, unsigned kind, union server_any *ret_message);

/* `message` begins with a struct server_header. `fd` points to a descriptor, or is NULL. */
void daemon_say(struct daemon *daemon, const void *message, const int *fd);

/* Passes a client on by the server's end of its socket, as funneld does. The others make the
 * socket, and return the client's end. */
void daemon_pass_socket(struct daemon *daemon, const struct server_identity *identity,
                        const struct hello *hello, uint64_t limit, uint32_t share, int socket);
int daemon_pass_on_with(struct daemon *daemon, const struct server_identity *identity,
                        const struct hello *hello, uint64_t limit, uint32_t share);
int daemon_pass_on(struct daemon *daemon, const struct server_identity *identity, uint64_t limit,
                   uint32_t share);

/* The same, and lets it attach. */
void daemon_bring_client(struct daemon *daemon, struct peer *peer, int32_t pid, uint64_t limit,
                         uint32_t share);
