/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose kernels have faulted. A fault ends the server of the program, and with it the work
 * of others. So after its first fault a program is served in another lane (lane.h), until it has
 * not faulted for ten minutes. All programs of a user in quarantine share that lane. What a program
 * is stands in client_program.h: never what it calls itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon.h"
#include "server_protocol.h"

#define QUARANTINE_LASTS_NS (600 * NS_PER_SEC)

/* In a server for all users, a user with so many programs in quarantine is in it with all. A user
 * can copy an executable, and say that another script runs; the other users shall not pay for it.
 */
#define QUARANTINE_PROGRAMS 3u

/* The program has faulted; times are clock_ns(). True when it is in quarantine from now on, and was
 * not before. When there are more programs than the table holds, the one that has faulted least
 * lately is forgotten. */
bool quarantine_add_fault(struct quarantine *quarantine, const struct client_program *program,
                          uint64_t now);

bool quarantine_has(const struct quarantine *quarantine, const struct client_program *program,
                    uint64_t now);

/* How many programs of the user are in quarantine. */
unsigned quarantine_count(const struct quarantine *quarantine, uint32_t uid, uint64_t now);

/* Counts a fault of a client; `identity` names it in the log. */
void quarantine_note(struct daemon *daemon, const struct server_identity *identity,
                     const struct client_program *program);

/* Whether the client belongs to its user's programs in quarantine; the log says so then. */
bool quarantine_has_client(const struct daemon *daemon, const struct server_identity *identity,
                           const struct client_program *program);
