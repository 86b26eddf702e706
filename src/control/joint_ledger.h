/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joint limits: device memory that the programs of a user, or of a group of a user, may have
 * together. They may be in several servers. So each client under such a limit has a row in a table
 * that all servers of the user share. It is in the shared memory of the claims (claims.h). Its
 * server writes there how much it has, and adds up the rows of the others before it grants more.
 *
 * The rows of a server that has died count until another one would refuse memory, and drops them. A
 * client never sees the table.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server_protocol.h"

#define JOINT_ROWS 4096u

struct joint_row {
    _Atomic int32_t server;                    /* process that writes the row; 0 = free */
    _Atomic uint64_t key[JOINT_LIMITS];        /* of struct joint_limit; 0 = none */
    _Atomic uint64_t used[SERVER_MAX_DEVICES]; /* bytes, by column of the device */
};

struct joint_ledger {
    _Atomic uint64_t device[SERVER_MAX_DEVICES]; /* of each column: of its UUID; 0 = free */
    _Atomic uint32_t rows;                       /* that have ever been taken */
    struct joint_row row[JOINT_ROWS];
};

/* What programs count under together: never 0. `group` "" is the user as a whole. */
uint64_t joint_key(uint32_t uid, const char *group);

/* The column of a device, which is the same in all servers. Of more than SERVER_MAX_DEVICES devices
 * the last share one. */
unsigned joint_ledger_column(struct joint_ledger *ledger, const uint8_t uuid[16]);

/* A row for a client of the server `pid`: NULL when there is none. */
struct joint_row *joint_ledger_take(struct joint_ledger *ledger, int32_t pid);

void joint_ledger_give_back(struct joint_row *row);

/* The bytes in that column of all rows with that key; `limit` is its place in the row. */
uint64_t joint_ledger_sum(const struct joint_ledger *ledger, unsigned limit, uint64_t key,
                          unsigned column);

/* Drops the rows of servers that have ended: whether there were any. */
bool joint_ledger_drop_dead(struct joint_ledger *ledger);
