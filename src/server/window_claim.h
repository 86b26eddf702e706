/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a window is when a client asks for the one that it had with an earlier server. Each client
 * says a random token when it attaches; the server writes it into a table that outlives it
 * (control/claims.h), and a client that comes back must say the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct claims;
struct hello;

/* The table that the daemon has given to this server at that descriptor, or where it has given
 * none, a new one that ends with the server. NULL when there is no memory. Before any client. */
struct claims *window_claims_open(int fd);

/* Whether the client that says this hello has had the window that it asks for. From any thread. */
bool window_claim_is_proven(struct claims *claims, const struct hello *hello);

/* The client `pid` has the window at `base` now. Without a token, or in a table that is full of
 * living clients, nobody will be able to claim it. From any thread, once for each session. */
void window_claim_set(struct claims *claims, const struct hello *hello, uint64_t base, int32_t pid);

/* The client has left in order, and its window goes to others. From any thread. */
void window_claim_drop(struct claims *claims, const struct hello *hello, uint64_t base);
