/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Granules and events that clients export to each other, by names with 96 random bits. The others
 * say which server knows the name.
 *
 * A share is the exported object with a reference count. References are its creator's granule or
 * event, its names, and the clients that have opened it. A name lives until its session withdraws
 * it.
 */
#pragma once

#include "session.h"

/* The limit of a session's own names, and of the names that it has opened. */
#define SESSION_IPC_MAX (1u << 16)

enum ipc_kind {
    IPC_MEMORY,
    IPC_EVENT,
};

struct ipc_share {
    enum ipc_kind kind;
    unsigned references; /* under the lock of the server's names */
    const struct device *device;
    CUmemGenericAllocationHandle memory; /* MEMORY: of a whole granule */
    uint64_t size;
    _Atomic(CUevent) event; /* EVENT; atomic: the last recorded of `events` */
    _Atomic(CUevent)
        events[ATTACH_DEVICES_MAX]; /* atomic: by device->ordinal; NULL: none there yet */
};

/* Random, but for the low half of the second word, which is ipc_server_number(). */
struct ipc_key {
    uint64_t words[2];
};

/* This server's process ID, by which its daemon finds it. */
uint32_t ipc_server_number(void);

/* The object of a name: a whole event, or a range of a granule. */
struct ipc_item {
    struct ipc_share *share;
    uint64_t offset, size;
};

/* A share with one reference, the caller's; NULL when out of memory. It takes over the driver's
 * object of `like`. */
struct ipc_share *ipc_share_create(const struct ipc_share *like);
/* Drops a reference. The calling thread is in the device's context. NULL is allowed. */
void ipc_share_unref(struct server *server, struct ipc_share *share);

/* The name that the session has given to an item, or a new one. CUDA_ERROR_OUT_OF_MEMORY, also
 * beyond SESSION_IPC_MAX. */
CUresult ipc_name(struct session *session, const struct ipc_item *item, struct ipc_key *ret_key);

/* Finds the object of a name, with a reference for the caller. CUDA_ERROR_INVALID_VALUE when no
 * client of the same user has given it out; CUDA_ERROR_INVALID_CONTEXT when it is the client's own.
 */
CUresult ipc_resolve(struct session *session, enum ipc_kind kind, struct ipc_key key,
                     struct ipc_item *ret_item);

/* Ends the names that the session gave to a share, or to the range at `offset` alone. */
void ipc_withdraw(struct session *session, const struct ipc_share *share);
void ipc_withdraw_part(struct session *session, const struct ipc_share *share, uint64_t offset);
void ipc_withdraw_all(struct session *session);

/* The names of all clients, and those that one session has given out. 0 or -ENOMEM. */
int server_ipc_init(struct server *server);
void server_ipc_fini(struct server *server);
int session_ipc_init(struct session *session);
void session_ipc_fini(struct session *session);
