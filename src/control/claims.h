/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients' windows of addresses: a table in shared memory that outlives a server, so that the
 * next one can tell who comes back. The daemon makes one for each user whose servers it starts
 * (funneld/servers/claim_table.h) and gives it to each of them. Servers read and write it, and the
 * daemon for servers that have died (window_claim.h). A client never sees it.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "hello.h"
#include "joint_ledger.h"

/* Where a server finds the descriptor of the table. */
#define SERVER_CLAIMS_FD 5

/* As many as eight servers have clients. */
#define CLAIMS_MAX 4096u

/* Of one process at a time. It needs one, or two while it moves. */
#define CLAIMS_OF_PROCESS 16u

enum claim_state {
    CLAIM_FREE = 0,
    CLAIM_BUSY = 1, /* a server writes it, or reads whether it is stale */
    CLAIM_SET = 2,
};

/* Other threads and servers may read an entry while it goes from a client that has ended to another
 * one. What they see of it then fits no client. */
struct claim {
    _Atomic uint32_t state; /* enum claim_state */
    _Atomic int32_t pid;    /* of the client, in the daemon's PID namespace; 0 = unknown */
    _Atomic uint64_t base;  /* of the window */
    _Atomic uint8_t token[HELLO_TOKEN_SIZE]; /* the client's */
};

struct claims {
    struct claim claim[CLAIMS_MAX];
    struct joint_ledger joint;
};
