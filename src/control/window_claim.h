/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proves which client had a window in an earlier server. Each client sends a random token when it
 * attaches. The server writes the token into a table that outlives the server (claims.h), and a
 * returning client must send the same token. The daemon enters the clients of a server that has
 * ended before it could do so itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hello.h"

struct claims;

/* Opens the daemon's table at that descriptor. Without one, creates a table that ends with the
 * server. NULL when out of memory. Before any client. */
struct claims *window_claims_open(int fd);

/* Whether the client of this token had the window at `base`. From any thread. */
bool window_claim_is_proven(struct claims *claims, const uint8_t token[HELLO_TOKEN_SIZE],
                            uint64_t base);

/* Whether a client that may live has the window at `base`, in this server or in another. From any
 * thread. */
bool window_claim_exists(struct claims *claims, uint64_t base);

/* Records that the client `pid` has the window at `base`. Without a token, or in a full table of
 * living clients, no client can claim the window later. From any thread, once for each session. */
void window_claim_set(struct claims *claims, const uint8_t token[HELLO_TOKEN_SIZE], uint64_t base,
                      int32_t pid);

/* Takes over the claims of clients that may come back, from the table of an earlier daemon. */
void window_claims_copy(struct claims *claims, struct claims *earlier);

/* The client has left orderly, so other clients may get its window. From any thread. */
void window_claim_drop(struct claims *claims, const uint8_t token[HELLO_TOKEN_SIZE], uint64_t base);
