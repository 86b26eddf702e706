/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is one client from its hello to the return of the last thing it held.
 *
 * Its own thread does everything that may take long: it shakes hands (attach.c), runs the client's
 * commands (worker.c) and clears up (session_end.c). The main thread makes sessions, notices that a
 * client has hung up, and buries the session when its thread is done. What the two share is the
 * part marked so below, under the server's lock or atomic.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "channel.h"
#include "device.h"
#include "device_printf.h"
#include "handles.h"
#include "launch_batch.h"
#include "list.h"
#include "ranges.h"
#include "server_protocol.h"
#include "sm_share.h"
#include "window.h"
#include "wire_calls.h"

struct server;
struct stream;
struct watch;

/* What one client may hold at a time. Far above what programs use, far below what hurts others. */
#define SESSION_HANDLES_MAX ATTACH_HANDLES_MAX
#define SESSION_STREAMS_MAX 4096u
#define SESSION_EVENTS_MAX (1u << 17)
#define SESSION_MODULES_MAX (1u << 14)
#define SESSION_FUNCTIONS_MAX (1u << 19)
#define SESSION_GRANULES_MAX (1u << 16)
#define SESSION_ALLOCATIONS_MAX (1u << 16)
#define SESSION_RESERVATIONS_MAX 4096u
#define SESSION_ARRAYS_MAX (1u << 16)
#define SESSION_TEXTURES_MAX (1u << 16)

enum session_phase {
    SESSION_ATTACHING,
    SESSION_SERVING,
    SESSION_DONE, /* its thread has ended or is about to; nothing is held but the window */
};

/* What a client has on one device. */
struct session_device {
    struct list streams;
    struct sm_share sm_share; /* the multiprocessors it may use */
    struct list parked;       /* libraries that it has unloaded: see module_cache.h */
    atomic_uint_fast64_t memory_used, memory_peak;
    uint64_t reached_by; /* bit d: device d may touch the client's memory of this one */
};

/* What is known from outside about the stream of a fence word. */
struct in_flight {
    uint32_t promised; /* the number that was last asked to be written */
    uint32_t unfenced; /* pieces of work behind it */
};

/* Sentences are cheap to provoke, so a client has only so many in a while. */
struct error_budget {
    uint64_t window_start;
    unsigned count;
};

struct session {
    struct server *server;
    struct server_client who; /* as the daemon sent it, or as --listen found out */
    uint32_t id;
    int socket;

    /* The main thread's. */
    struct list link;
    struct watch *hang_up;
    pthread_t thread;
    bool announced; /* the daemon was told that it attached */

    /* Shared. */
    _Atomic enum session_phase phase;
    atomic_bool window_taken; /* it has attached */
    atomic_bool stop;         /* the thread shall come to an end */
    atomic_bool abandoned;    /* it was to end a while ago, and a kernel of it does not */
    atomic_int end_status;  /* why the server ended the client: a CUresult, 0 = it left by itself */
    atomic_bool distrusted; /* it broke the protocol; nothing it can still write to is used again */
    struct channel_server *channel;                        /* written under the server's lock */
    atomic_uint_fast64_t memory_limit[SERVER_MAX_DEVICES]; /* 0 = none */
    atomic_uint sm_centipercent, priority;                 /* as in server_limits */
    atomic_bool limits_changed; /* the session's thread has to look at those two again */
    atomic_uint_fast64_t launches, copies, copied_bytes;
    struct {
        uint64_t copied_bytes, work;
        unsigned busy_samples;                     /* in which it counts as being at work */
        struct channel_load load;                  /* as the client was told */
    } seen;                                        /* the watching thread's: copy_load.h */
    atomic_uint_fast64_t memory_refused;           /* how often its limit was in the way */
    atomic_uint_fast64_t device_mask;              /* devices that it has used */
    struct in_flight in_flight[GPU_REGION_FENCES]; /* by fence word: see fence.c */
    struct session_printf printf_output;

    /* The session thread's. */
    struct window *window;
    struct handles objects;
    struct session_device device[SERVER_MAX_DEVICES];
    const struct device *current; /* whose context the thread is in */
    struct list sm_shares;        /* struct sm_share: of contexts */
    unsigned sm_share_count;
    uint32_t last_sm_share;
    struct ranges extents; /* struct granule: every range that the client may copy to or from */
    struct ranges reservations; /* addresses that the client has reserved */
    uint64_t reserved_bytes;
    struct ranges mappings; /* struct mapping, in reservations: see vmm.c */
    unsigned streams, events, modules, functions, allocations, arrays, textures;
    struct launch_batch launch_batch; /* launches not made yet */
    struct list blobs;                /* struct blob: received, and not asked for yet */
    unsigned blob_count;
    struct list graphs; /* struct graph */
    uint64_t graph_bytes;
    struct list ipc_names; /* given to others: ipc_share.c */
    unsigned ipc_name_count;
    struct list ipc_imports; /* struct ipc_import: granules of others */
    uint32_t
        host_wait_seq[GPU_REGION_HOST_WAITS]; /* what streams wait for in each host-wait word */
    struct list waits;                        /* struct wait: what streams wait for elsewhere */
    unsigned wait_count;
    bool
        has_host_waits; /* some stream has waited for the client, or for a word: the worker's own */
    struct error_budget error_budget;
    bool error_logged;      /* about the command that runs now */
    uint64_t last_function; /* handle of what was launched last */

    /* Shared again, for fault reports. */
    pthread_mutex_t kernel_lock;
    char last_kernel[128];
};

/* A session without thread and socket; NULL when out of memory. */
struct session *session_create(struct server *server, const struct server_client *who);

/* Starts its thread: 0 or -errno. */
int session_start(struct session *session);

/* Its thread is done and joined, or was never started. */
void session_destroy(struct session *session);

/* Asks the thread to come to an end; never waits. `status` is for the record, 0 = hung up. */
void session_stop(struct session *session, CUresult status);

/* From any thread: the limits are these from now on. The session's thread takes over the share and
 * the priority when it is kicked, or has its next command. */
void session_set_limits(struct session *session, const struct server_limits *limits);

/* Wakes its thread. */
void session_kick(struct session *session);

/* Every later call of the client reports `status`, and whoever sleeps in it wakes. The second is
 * for callers that hold the server's lock. */
void session_fail(struct session *session, CUresult status);
void session_fail_locked(struct session *session, CUresult status);

/* Enters an object under a handle that the client minted. The handle must be of the kind. */
CUresult session_put(struct session *session, enum wire_handle kind, uint64_t handle, void *object);

/* The object behind a handle, or NULL when the client has none of that kind. */
static inline void *session_lookup(const struct session *session, enum wire_handle kind,
                                   uint64_t handle)
{
    return handles_get(&session->objects, kind, handle);
}

/* Takes it out again. */
void session_remove(struct session *session, enum wire_handle kind, uint64_t handle);

/* Makes the thread's current context that of a device, which the client is said to use from then
 * on; and for a purpose of our own. */
CUresult session_enter(struct session *session, const struct device *device);
CUresult session_visit(struct session *session, const struct device *device);

/* The device with this number, or NULL and a sentence. */
const struct device *session_find_device(struct session *session, const char *call, uint32_t index);

/* Notes launches that are about to be made, for the counters and for fault reports: a fault may
 * come sooner than the driver's call returns. The last is of this function. */
void session_launched(struct session *session, unsigned count, uint64_t function,
                      const char *kernel);

/* From any thread: the name of the kernel that was launched last, or "(none)". */
void session_last_kernel(struct session *session, char *ret_name, size_t size);

/* A sentence about a mistake of the client, into the log: which call, which argument, which limit.
 */
void session_log_error(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How the log calls a client. */
#define CLIENT_FORMAT "{PID: %d, Context ID: %u}"
#define CLIENT_ARGS(session) (session)->who.identity.pid, (session)->id
