/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.jsonl in the log directory: a line of JSON for each client that has ended, for those who
 * charge for the use of a GPU. The names stand in docs/accounting.md.
 *
 * Every line is whole. One that does not fit on the disk waits in memory until it does, with others
 * up to some megabytes. Clients beyond that, and those of a user who has taken the user's share of
 * the journal, are added up (usage_sums.h). A file of more than 16 MiB becomes usage.jsonl.1, and
 * so on up to .4. Only the daemon's user may read it, since command lines stand in it.
 */
#pragma once

#include "daemon.h"
#include "server_protocol.h"

/* A client that had attached to the server with this name and these devices has ended at that time
 * (wall clock, seconds). Adds it to the totals, and a line to the journal. */
void usage_journal_add(const struct daemon *daemon, const char *server,
                       const struct server_ready *ready, const struct server_identity *who,
                       const struct server_client_gone *gone, int64_t ended);

/* Whether that line is the last one of the journal, because a daemon was killed just after it. */
bool usage_journal_has(const struct daemon *daemon, const char *server,
                       const struct server_ready *ready, const struct server_identity *who,
                       const struct server_client_gone *gone, int64_t ended);

/* Takes half a line back that a killed daemon has left at the end. */
void usage_journal_mend(const struct daemon *daemon);

/* Now and then: writes what has waited. */
void usage_journal_write_rest(const struct daemon *daemon);

/* Whether lines wait for the disk. */
bool usage_journal_waits(void);

/* The daemon ends: writes all there is, and tells control.log of what cannot be written. */
void usage_journal_close(const struct daemon *daemon);
