/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor that its owner lends to a peer and can take back without the peer's help. It lies in
 * the queue of a socket. Both have the receiving end, the inbox, and the peer takes the descriptor
 * out only once the owner has ended.
 *
 *     owner ── outbox ──> [ descriptor ] ──> inbox: the owner's, and the peer's duplicate of it
 *
 * A peer that means harm may take the descriptor out, or a copy, at any time.
 */
#pragma once

#include <stdbool.h>

struct revocable {
    int inbox, outbox; /* -1 = there is none */
};

#define REVOCABLE_NONE ((struct revocable){-1, -1})

/* Without a descriptor so far: 0 or -errno. The owner gives the peer a duplicate of the inbox. */
int revocable_init(struct revocable *revocable);

/* Closes both ends: what the peer has in its inbox stays there. REVOCABLE_NONE is allowed. */
void revocable_fini(struct revocable *revocable);

/* Puts a duplicate of `fd` into the inbox, behind what is there: 0 or -errno. */
int revocable_fill(const struct revocable *revocable, int fd);

/* Takes out and closes what is behind the first: 0 or -errno, and then the inbox may be empty. */
int revocable_keep_first(const struct revocable *revocable);

/* Takes the descriptor out and closes it. Nothing where the inbox is empty. */
void revocable_revoke(const struct revocable *revocable);

/* The peer: whether there is a descriptor in the inbox. The second takes it out for the caller to
 * close; -ENODATA where there is none. */
bool revocable_is_filled(int inbox);
int revocable_take(int inbox, int *ret_fd);

/* The peer: takes all descriptors out, and closes all but the last. */
int revocable_take_last(int inbox, int *ret_fd);

/* The peer: what it has taken out lies in an inbox of its own from now on, under the same number. 0
 * or -errno. */
int revocable_put_back(int inbox, int fd);
