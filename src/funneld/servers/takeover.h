/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers of a daemon that has died, by kill -9 or for an upgrade, which serve their clients
 * meanwhile. The next daemon of the same pipe directory finds their files (server_file.h). It
 * checks that the process is the one that the earlier daemon has started, connects to its socket,
 * and asks which clients are still there. From then on it is a server like any other.
 */
#pragma once

#include "daemon.h"
#include "server_process.h"

/* Before the daemon accepts connections: programs that come wait for the answers of the servers.
 * The log names each server that cannot be taken over; its programs go on, and then it ends. */
void takeover_begin(struct daemon *daemon);

/* The server has said which clients it has. */
void takeover_resumed(struct server_process *server, const struct server_resumed *resumed);

/* The server has ended, or is out of reach, before it has entered its clients' windows in the table
 * of this daemon. The daemon enters those that it knows of, so that the clients can move. */
void takeover_enter_claims(const struct server_process *server);
