/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much one client may hold of the things that all clients of a server share. It is the part of
 * the table of quotas (quota_table.h) that the server counts. The daemon says what is in force; a
 * server without a daemon reads FUNNEL_QUOTAS="host-memory=8G,ranges=4096" itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "quota_table.h"

struct session;

/* What a client holds now. Its thread writes it, and status rows read it. */
struct quota_use {
    atomic_uint_fast64_t held[QUOTA_HELD_COUNT];
    atomic_uint_fast64_t refused; /* how often a quota refused something */
};

/* Fills the table with the defaults and then with `changes`, which may be NULL. On -EINVAL the
 * table stays as it was, and the log names the mistake. Before there are clients. */
int server_quotas_init(const char *changes);

/* From any thread: takes over what the daemon says. Clients keep what they hold. */
void server_quotas_set(const struct quotas *quotas);

/* From any thread. */
uint64_t quota(enum quota which);

/* On the session's thread: whether the client may hold `more` of this; an error in the log when
 * not. */
bool quota_allows(struct session *session, enum quota which, uint64_t more);

/* On the session's thread: it holds `amount` more; quota_take() asks first. The third gives back.
 */
void quota_add(struct session *session, enum quota which, uint64_t amount);
bool quota_take(struct session *session, enum quota which, uint64_t amount);
void quota_give(struct session *session, enum quota which, uint64_t amount);

/* The same for what is counted elsewhere: the client holds so much now. */
void quota_note(struct session *session, enum quota which, uint64_t held);

/* From any thread: what the client holds. */
uint64_t quota_held(const struct session *session, enum quota which);
