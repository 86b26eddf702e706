/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What copies and memsets on streams have in common with those of graphs. Functions are the session
 * thread's unless their comment says otherwise; sizes are bytes.
 */
#pragma once

#include "server.h"
#include "session.h"
#include "window.h"

/* The box as the driver wants it; the addresses tell where each side is. */
CUDA_MEMCPY3D copy_describe(const struct wire_cuMemcpy3DAsync_v2 *in);

/* Whether every byte of the sides is the client's own. False comes with an error in the log. */
bool copy_check_ends(struct session *session, const char *call, uint64_t dst, uint64_t src,
                     uint64_t size);
bool copy_check(struct session *session, const char *call, const CUDA_MEMCPY3D *box);
bool copy_check_memset(struct session *session, const char *call, const struct wire_fnMemset *in);

/* How many bytes a box takes from the first to the last: false when that overflows. */
bool copy_span(uint64_t pitch, uint64_t slice_rows, uint64_t width, uint64_t height, uint64_t depth,
               uint64_t *ret_span);

/* Which way a copy goes. */
enum copy_way {
    COPY_UP,     /* from the host's memory to a device's */
    COPY_DOWN,   /* the other way */
    COPY_WITHIN, /* both sides are a device's memory, or both are the host's */
    COPY_WAYS,
};

/* Of these addresses of the client. */
enum copy_way copy_way_of(const struct window *window, uint64_t dst, uint64_t src);

/* Counts a copy of so many bytes. */
void copy_count(struct session *session, enum copy_way way, uint64_t bytes);

/* From any thread: how many copies the client has made, and of how many bytes together. */
void copy_counters(const struct session *session, uint64_t *ret_count, uint64_t *ret_bytes);

/* From any thread: the bytes that went each way. */
void copy_bytes(const struct session *session, uint64_t ret_bytes[COPY_WAYS]);

/* ---- the parts of devices and of a session: copy_state.c ---- */

struct copy_options {
    bool no_copy_load; /* nothing is prepared for many clients that copy: FUNNEL_NO_COPY_CROWD */
    bool no_shared_stream; /* FUNNEL_NO_COPY_LANE */
    bool no_copy_kernel;   /* FUNNEL_NO_COPY_KERNEL */
};

/* The server's devices are initialized. 0 or -ENOMEM. */
int server_copies_init(struct server *server, const struct copy_options *options);
void server_copies_fini(struct server *server);
int session_copies_init(struct session *session);
void session_copies_fini(struct session *session);
