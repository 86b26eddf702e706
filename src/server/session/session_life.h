/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a session: its thread, why it ends, and its destruction. */
#pragma once

#include "channel.h"
#include "launch_rate.h"
#include "session.h"
#include "usage_mark.h"

struct session_trace;
struct trace_file;
struct watch;

/* The watchdog's state of a client since the last round: copy_load.h. */
struct session_load {
    uint64_t copied_bytes, work;
    struct launch_rate rate;  /* trainings.h */
    unsigned busy_samples;    /* rounds in which the client still counts as busy */
    bool paused;              /* was idle at some time since upkeep.c began to poll */
    struct channel_load told; /* the last values sent to the client */
    bool hold_told;           /* likewise, of channel_server_want_hold() */
};

/* The call of the client's thread at the main thread's last sample: stall.h. */
struct session_call {
    const char *name; /* NULL = in none */
    uint32_t position;
    uint64_t since; /* clock_ns() */
    bool stalled;   /* it waited because of another client's call */
};

struct session_life {
    struct hello hello; /* the session's thread's, and constant once it serves */
    bool is_main_lane;  /* the server, for struct server_client; constant */

    /* The main thread's. */
    struct watch *hang_up;
    struct watch *process_end; /* NULL = there is none any more */
    int process;               /* the client's, by its descriptor; -1 = it is not known */
    bool process_ended;
    pthread_t thread;
    uint64_t reported_work;     /* at the last report to the daemon; 0 = never */
    struct usage_mark reported; /* at the last report: early_report.h */
    struct usage_mark looked;   /* at the last look */
    struct usage_mark used;     /* so far, as the look in hand has added it up */
    struct session_call call;
    uint32_t leave_request; /* session_leave.h: the daemon's order, to be answered */

    /* The session's thread's. */
    struct trace_file *profile;    /* profile.h; NULL = no profiler */
    struct session_trace *tracing; /* trace.h; NULL = not now */
    uint64_t pool_stays;           /* how often a worker of the pool has served it */

    /* Of any thread. */
    atomic_bool attached;
    atomic_bool announced;  /* the daemon knows that it has attached; the main thread writes it */
    atomic_bool abandoned;  /* it has ended, but a kernel of it still runs */
    atomic_int end_status;  /* why the server ended the client: a CUresult, 0 = it left by itself */
    atomic_bool distrusted; /* it broke the protocol */
    atomic_bool leave_ordered; /* the client is to move to another server; the main thread writes */
    atomic_bool leave_withdrawn; /* ... but for an order that came while it was on its way */
    atomic_uint leave_device;    /* 1 + the device to which it is to move; 0 = to another lane */
    atomic_bool leaves_gently;   /* ... but not at any price */
    atomic_bool leaves;          /* it may, and is about to hang up */
    atomic_bool leave_wished;    /* it asks for an order, and the daemon does not know yet */
    uint64_t wished_until;    /* session thread: clock_ns() at which its wishes are earned again */
    atomic_uint leave_server; /* ... to that server; 0 = to one without long kernels */

    /* The watchdog's, under the server's lock. */
    struct session_load load;
    uint64_t stop_seen_ns; /* when it first saw that the session shall end; 0: not yet */
};

/* A session without thread and socket; NULL when out of memory. */
struct session *session_create(struct server *server, const struct server_client *who, uint32_t id);

/* Starts its thread: 0 or -errno. */
int session_start(struct session *session);

/* Its thread is done and joined, or was never started. NULL is allowed. */
void session_destroy(struct session *session);

/* From any thread: asks the session's thread to end, and never waits. `status` is the reason for
 * the daemon: CUDA_SUCCESS when the client has hung up. */
void session_stop(struct session *session, CUresult status);

/* From any thread: wakes the session's thread if it sleeps on the ring. */
void session_kick(struct session *session);

/* From any thread: every later call of the client reports `status`, and its sleeping threads wake.
 * The second is for callers that hold the server's lock. */
void session_fail(struct session *session, CUresult status);
void session_fail_locked(struct session *session, CUresult status);

/* For callers that hold the server's lock: both, session_fail() and session_stop(). */
void session_end_locked(struct session *session, CUresult status);
