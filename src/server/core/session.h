/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is one client, from its hello to the release of the last resource that it held.
 *
 * Its own thread does everything that may take long: it attaches the client, runs the client's
 * commands and releases what the client leaves behind. The main thread creates sessions, notices
 * that a client has hung up, and destroys the session when its thread is done. Members are the
 * session thread's unless they are atomic or their comment says otherwise. While the session is
 * `pooled` its thread sleeps, and they are a worker's (worker_pool.h). Each subsystem keeps its own
 * part, to which the session has a pointer that only the subsystem can look behind.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "activity.h"
#include "channel.h"
#include "device.h"
#include "handles.h"
#include "list.h"
#include "quota.h"
#include "server_protocol.h"
#include "session_limits.h"
#include "wire_calls.h"

struct server;

/* What one client may hold at a time: far above what programs use, far below what hurts others. */
#define SESSION_HANDLES_MAX ATTACH_HANDLES_MAX

#define SESSION_REASON_MAX 512

enum session_phase {
    SESSION_ATTACHING,
    SESSION_SERVING,
    SESSION_DONE, /* its thread has ended or is about to; it holds only the window */
};

/* Errors are cheap to provoke, so a client may cause only so many log lines in a while. */
struct error_budget {
    uint64_t window_start;
    unsigned count;
    uint64_t minute_start, bytes; /* of lines since then: QUOTA_LOG */
};

struct session {
    struct server *server; /* constant from the start of the thread on, as the next three */
    struct server_identity identity; /* as the daemon sent it, or as --listen found out */
    uint32_t id;
    int socket;
    struct list link; /* in server->sessions: the main thread's, under the server's lock */
    _Atomic enum session_phase phase;
    atomic_bool stop;    /* the thread shall end: any thread sets it */
    atomic_bool at_rest; /* session_is_at_rest(): suspend.h */
    struct {
        atomic_uint count;          /* of suspensions, a lingering one included */
        atomic_uint_fast64_t until; /* clock_ns(): by then the session goes on all the same */
        atomic_bool lingers;        /* an exclusive call has ended, and left `until` behind */
    } suspended;                    /* suspend.h */
    uint64_t long_work_seen;        /* when, by clock_ns(): idle.c, under the server's lock */
    struct activity activity;       /* of the thread */
    struct session_limits limits;
    struct quota_use quotas;
    struct channel_server *channel; /* written under the server's lock */

    struct window *window; /* the client's addresses; NULL until it has attached */
    struct handles objects;
    const struct device *current;     /* whose context the thread is in */
    bool is_timed;                    /* its work is: trace.h */
    bool pooled;                      /* a worker serves it, or is about to: worker_pool.h */
    atomic_bool gathers;              /* workers hold its launches back: launch_batch_gathers() */
    atomic_bool unpooled;             /* no worker shall serve it: worker_pool_exempt_locked() */
    atomic_uint_fast64_t device_mask; /* bit d: the client has used device d */
    uint32_t limits_used[ATTACH_DEVICES_MAX]; /* bit l: of device d, by its kernels: CUlimit l */
    struct error_budget error_budget;
    unsigned since_error; /* commands since an error was logged; 0: about the one that runs now */
    char reason[SESSION_REASON_MAX]; /* of the last error, until the client has asked for it */

    struct session_blobs *blobs;
    struct session_ipc *ipc;
    struct session_memory *memory;
    struct session_sm_shares *sm_shares;
    struct session_streams *streams;
    struct session_modules *modules;
    struct session_printf *printf;
    struct session_copies *copies;
    struct session_arrays *arrays;
    struct session_launch *launch;
    struct session_graphs *graphs;
    struct session_accounting *accounting;
    struct session_life *life;
    struct session_swapping *swapping;
};

/* Begins a session without socket, thread or parts. 0 or -ENOMEM. */
int session_init(struct session *session, struct server *server,
                 const struct server_identity *identity, uint32_t id);

/* Ends the handle table and closes the socket. */
void session_fini(struct session *session);

/* Enters an object under a handle that the client minted. CUDA_ERROR_INVALID_HANDLE, with a line in
 * the log, when the handle is of another kind or in use; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult session_put(struct session *session, enum wire_handle kind, uint64_t handle, void *object);

/* The object behind a handle, or NULL when the client has none of that kind. */
static inline void *session_lookup(const struct session *session, enum wire_handle kind,
                                   uint64_t handle)
{
    return handles_get(&session->objects, kind, handle);
}

/* Takes an object out of the handle table. The object itself stays the caller's. */
void session_remove(struct session *session, enum wire_handle kind, uint64_t handle);

/* Makes a device's context the thread's current one. After session_enter() the client counts as a
 * user of the device; session_visit() is for purposes of the server's own. */
CUresult session_enter(struct session *session, const struct device *device);
CUresult session_visit(struct session *session, const struct device *device);

/* The device with this number, of which there is one. */
const struct device *session_device(const struct session *session, unsigned ordinal);

/* The same for a number of the client's: NULL, and an error in the log, when there is none. */
const struct device *session_find_device(struct session *session, const char *call, uint32_t index);

/* Looks at a result of the driver. One that means that the context is lost ends the server, and
 * then this does not return. */
void session_check(struct session *session, CUresult result);

/* Counts a line of so many bytes: false when the budget is used up, and `ret_last` with the last
 * line. The budget is the caller's, or guarded by its lock. */
bool error_budget_take(struct error_budget *error_budget, uint64_t bytes, bool *ret_last);

/* Logs an error of the client: the call, the argument, the limit. */
void session_log_error(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How the log names a client. */
#define CLIENT_FORMAT "{PID: %d, Context ID: %u}"
#define CLIENT_ARGS(session) (session)->identity.pid, (session)->id

/* log_with(LOG_ABOUT()) and log_with(LOG_EVENT()): "Client {...}", and then the text. */
#define session_log(session, format, ...)                                        \
    log_with(LOG_ABOUT((session)->identity.pid), "Client " CLIENT_FORMAT format, \
             CLIENT_ARGS(session), ##__VA_ARGS__)
#define session_log_event(session, error, format, ...)                                  \
    log_with(LOG_EVENT((session)->identity.pid, error), "Client " CLIENT_FORMAT format, \
             CLIENT_ARGS(session), ##__VA_ARGS__)
