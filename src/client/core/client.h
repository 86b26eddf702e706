/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attached process: one struct client, made by the first cuInit and kept to the end. A child of
 * fork starts again with none. Here is what was agreed at the attach and what every subsystem uses;
 * each subsystem keeps the rest of its state to itself. Unless a header of src/client says
 * otherwise, sizes, offsets and addresses are in bytes. Any thread may call a function inside
 * call_begin() and call_end() that holds no lock of the library. A function that waits for the
 * server or the device may take arbitrarily long. A CUresult is CUDA_SUCCESS, an error named beside
 * the function, or the error of a lost server or context. Results (`ret_x`) are written only on
 * success.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attach.h"
#include "channel.h"
#include "client_device.h"
#include "cuda_abi.h"
#include "handles.h"
#include "hello.h"
#include "list.h"

/* Kinds of handles that stay in the client; handles that travel have wire kinds, from 1 up. */
enum client_kind {
    CLIENT_CONTEXT = 100,
    CLIENT_LIBRARY = 101,
    CLIENT_KERNEL = 102,
    CLIENT_POOL = 103,
    CLIENT_GREEN = 104,    /* a context as a CUgreenCtx */
    CLIENT_RESOURCE = 105, /* a CUdevResourceDesc */
};

/* The hello of the first attach and the socket it went to: another server is sent the same. */
struct attach_request {
    char path[128]; /* of the daemon's socket; empty = longer than that */
    struct hello hello;
};

struct client {
    struct channel channel;
    int socket;
    uint64_t socket_inode; /* tells whether the program has closed our descriptors */
    uint64_t attached_ns;  /* machine_ns() */
    struct attach_request request;
    pthread_mutex_t socket_lock; /* from a request for a descriptor until it is here */
    uint32_t generation;         /* differs from that of any client before a fork */
    _Atomic uint32_t next_blob;  /* atomic: the last number given to a sent descriptor */

    /* The server's offer. It does not change, and another server has to offer the same. All
     * sizes are in bytes. */
    int driver_version;
    uint64_t window_base, window_end;
    uint64_t device_span, device_stride;
    uint64_t host_base;
    const _Atomic uint32_t *fences;
    _Atomic uint32_t *host_wait_words;
    uint32_t fence_count, host_wait_count;
    uint64_t staging_address;
    uint32_t staging_slots;

    struct device_record *records;
    uint32_t record_count;
    struct device devices[ATTACH_DEVICES_MAX];
    int device_count;

    struct handles handles;

    pthread_mutex_t lock; /* held briefly: the list of contexts, and the lists in each */
    struct list contexts;
    _Atomic uint64_t next_id; /* atomic: of contexts, streams, allocations */
};

/* NULL until attached. Never freed: threads may be inside it. Hidden, so that it is reached without
 * a look-up in the table of symbols that other libraries might replace. */
extern __attribute__((visibility("hidden"))) struct client *client;

/* Whether an address is in the client's window. */
static inline bool client_in_window(uint64_t address)
{
    return address >= client->window_base && address < client->window_end;
}

/* A number that no other context, stream or allocation of this client has. */
static inline uint64_t client_next_id(void)
{
    return atomic_fetch_add_explicit(&client->next_id, 1, memory_order_relaxed) + 1;
}

/* An error that every call reports from now on, or CUDA_SUCCESS. The caller passes it on to the
 * program: a client whose program knows of the end of its server is not moved to another one. */
static inline CUresult client_error(void)
{
    CUresult error = channel_error(&client->channel);

    if (__builtin_expect(error != CUDA_SUCCESS, 0))
        channel_break(&client->channel);
    return error;
}

/* client_error(), or else the error that an asynchronous command left, which is thereby taken. */
CUresult client_asked_error(void);

/* client_asked_error() at the end of a call that synchronizes. It writes device printf output, and
 * the program then sees the values of managed variables that kernels wrote. */
CUresult client_sync_error(void);
