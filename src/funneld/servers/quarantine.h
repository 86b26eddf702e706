/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose kernels fault again and again. A fault ends the server of the program, and with it
 * the work of others, so one that has faulted three times within a minute is served by a server of
 * its own for ten minutes: that of its user's programs in quarantine. A program is known by its
 * user and its command line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon.h"
#include "server_protocol.h"

#define QUARANTINE_FAULTS 3u
#define QUARANTINE_WITHIN_NS (60 * NS_PER_SEC)
#define QUARANTINE_LASTS_NS (600 * NS_PER_SEC)

/* What the name of such a server ends with. */
#define QUARANTINE_SUFFIX "_quarantine"

struct server_route;

/* The program has faulted; times are clock_ns(). True when it is in quarantine from now on, and was
 * not before. When there are more programs than the table holds, the one that has faulted least
 * lately is forgotten. */
bool quarantine_add_fault(struct quarantine *quarantine, uint32_t uid, const char *command,
                          uint64_t now);

bool quarantine_has(const struct quarantine *quarantine, uint32_t uid, const char *command,
                    uint64_t now);

/* Whether any program of the user is in quarantine. */
bool quarantine_has_user(const struct quarantine *quarantine, uint32_t uid, uint64_t now);

/* Counts a fault of a client that a server has reported. */
void quarantine_note(struct daemon *daemon, const struct server_identity *identity);

/* A program in quarantine belongs to another server than its user's other programs. */
void quarantine_change_route(const struct daemon *daemon, const struct server_identity *identity,
                             struct server_route *route);

/* Whether the server is one of programs in quarantine. */
bool quarantine_owns(const struct server_process *server);

/* Lets the server of programs in quarantine leave when there are none any more. */
void quarantine_check(struct server_process *server);
