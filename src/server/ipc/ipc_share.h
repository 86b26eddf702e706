/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients let each other have: granules and events, by names of 128 random bits.
 *
 * A share is the thing itself, counted: it lives as long as its maker's granule or event, a name of
 * it, or somebody who opened it. A name lives as long as the session that gave it out leaves it.
 */
#pragma once

#include "session.h"

/* A session may have given out so many names, and opened so many. */
#define SESSION_IPC_MAX (1u << 16)

enum ipc_kind {
    IPC_MEMORY,
    IPC_EVENT,
};

struct ipc_share {
    enum ipc_kind kind;
    unsigned references; /* under the server's ipc_lock */
    const struct device *device;
    CUmemGenericAllocationHandle memory; /* MEMORY: of a whole granule */
    uint64_t size;
    CUevent event; /* EVENT */
};

struct ipc_key {
    uint64_t words[2];
};

/* What a name stands for: all of an event, or a piece of a granule. */
struct ipc_item {
    struct ipc_share *share;
    uint64_t offset, size;
};

/* A share of what the caller has, for which it has the first reference; NULL: out of memory. It
 * takes over `like`'s driver object. */
struct ipc_share *ipc_share_create(const struct ipc_share *like);
/* Drops a reference. The calling thread is inside the device's context. NULL is allowed. */
void ipc_share_unref(struct server *server, struct ipc_share *share);

/* The name that the session has given to an item, or a new one. */
CUresult ipc_name(struct session *session, const struct ipc_item *item, struct ipc_key *ret_key);

/* What a name stands for, with a reference for the caller. CUDA_ERROR_INVALID_VALUE when there is
 * none such for this client; CUDA_ERROR_INVALID_CONTEXT when it is the client's own. */
CUresult ipc_resolve(struct session *session, enum ipc_kind kind, struct ipc_key key,
                     struct ipc_item *ret_item);

/* Ends the names that the session gave to a share, or to the piece at `offset` alone. */
void ipc_withdraw(struct session *session, const struct ipc_share *share);
void ipc_withdraw_part(struct session *session, const struct ipc_share *share, uint64_t offset);
void ipc_withdraw_all(struct session *session);

/* The names of all clients, and those that one session has given out. */
int server_ipc_init(struct server *server);
void server_ipc_fini(struct server *server);
int session_ipc_init(struct session *session);
void session_ipc_fini(struct session *session);
