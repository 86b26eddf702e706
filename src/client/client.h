/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attached process: one struct client, made by the first cuInit and kept to the end. A child
 * of fork starts again with none.
 */
#ifndef FUNNEL_CLIENT_H
#define FUNNEL_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "attach.h"
#include "channel.h"
#include "cuda_abi.h"
#include "handles.h"
#include "heap.h"
#include "hello.h"
#include "list.h"
#include "map.h"
#include "ranges.h"

struct context;
struct stream;

/* Kinds of handles that stay in the client; those that travel are wire kinds, from 1 up. */
enum client_kind {
    CLIENT_CONTEXT = 100,
    CLIENT_LIBRARY = 101,
    CLIENT_KERNEL = 102,
    CLIENT_POOL = 103,
};

/* A device that this process may see, in its own order (CUDA_VISIBLE_DEVICES). */
struct device {
    int ordinal;    /* the process's number */
    uint32_t index; /* the server's number */
    const struct device_record *record;
    struct context *primary;
    struct heap heap;      /* device memory */
    uint32_t reaches;      /* atomic; bit d: it reaches our memory of the server's device d */
    struct map textures;   /* by the driver's value; under client->lock */
    struct map surfaces;   /* likewise */
    struct stream *legacy; /* made when it is first used; under client->lock */
    uint32_t blocking_streams;
    uint32_t nonblocking_streams;
    uint64_t blocking_work; /* commands put on blocking streams; under the channel lock */
};

/* Of kernels: see client_printf.h. */
struct kept_output {
    char *bytes;
    size_t size;
};

/* What was said to whom when this client began: another server hears the same. */
struct attach_request {
    char path[128]; /* of the daemon's socket; empty = longer than that */
    struct hello hello;
};

struct client {
    struct channel channel;
    int socket;
    uint64_t socket_inode; /* programs close descriptors that are not theirs */
    struct attach_request request;
    pthread_mutex_t socket_lock; /* from a request for a granule until its descriptor is here */
    uint32_t generation;         /* differs from that of any client before a fork */
    uint32_t next_blob;

    int driver_version;
    uint64_t window_base, window_end;
    uint64_t device_span, device_stride;
    uint64_t host_base;
    const uint32_t *fences;
    uint32_t *host_wait_words;
    uint32_t fence_count, host_wait_count;
    uint64_t staging_address;
    uint32_t staging_slots;

    const struct device_record *records;
    size_t records_size;
    struct device devices[ATTACH_DEVICES_MAX];
    int device_count;

    struct handles handles;
    struct heap host_heap; /* pinned host memory */

    pthread_mutex_t printf_lock; /* who takes and writes text of kernels */
    struct kept_output kept_output[OUTPUT_KINDS];
    bool keeps_output;    /* atomic */
    pthread_mutex_t lock; /* short: the lists below and in contexts */
    struct list contexts;
    struct ranges globals; /* variables of modules, which lie outside the window */
    uint64_t next_id;      /* of contexts, streams, allocations */
};

/* NULL until attached. Never freed: threads may be inside it. Hidden, so that it is reached without
 * a look into the table of what other libraries might replace. */
extern __attribute__((visibility("hidden"))) struct client *client;

static inline uint64_t client_next_id(void)
{
    return __atomic_add_fetch(&client->next_id, 1, __ATOMIC_RELAXED);
}

/* An error that every call reports from now on, or CUDA_SUCCESS. Whoever asks tells the program: a
 * client that has heard of the end of its server is not moved to another any more. */
static inline CUresult client_error(void)
{
    CUresult error = channel_error(&client->channel);

    if (__builtin_expect(error != CUDA_SUCCESS, 0))
        channel_break(&client->channel);
    return error;
}

/* The same, and else the error that an asynchronous command left, which is thereby taken. */
CUresult client_asked_error(void);

/* The same at the end of a call that synchronises: what kernels printed comes out. */
CUresult client_sync_error(void);

/* A sentence for the server's log, or FUNNEL_LOG's file where there is no server. */
void client_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Decides between funnel and passthrough if that is still open: 0, or why neither can be. */
CUresult client_decide(void);

/* client_decide(), and from then on every call is served. */
CUresult client_start(void);

#endif
