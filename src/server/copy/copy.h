/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by copies and memsets on streams and in graphs. Functions are the session thread's unless
 * their comment says otherwise; sizes are bytes.
 */
#pragma once

#include "server.h"
#include "session.h"
#include "window.h"

struct stream;

/* The box in the driver's form, with sides of type CU_MEMORYTYPE_UNIFIED. */
CUDA_MEMCPY3D copy_describe(const struct wire_cuMemcpy3DAsync_v2 *in);

/* Whether every byte of both sides belongs to the client; else the log has the error. */
bool copy_check_ends(struct session *session, const char *call, uint64_t dst, uint64_t src,
                     uint64_t size);
bool copy_check(struct session *session, const char *call, const CUDA_MEMCPY3D *box);
bool copy_check_memset(struct session *session, const char *call, const struct wire_fnMemset *in);

/* A memset that has been checked, by the driver. What the driver says. */
CUresult copy_memset(const struct session *session, const struct wire_fnMemset *in,
                     struct stream *stream);

/* The bytes of a box from the first to the last: false on overflow. */
bool copy_span(uint64_t pitch, uint64_t slice_rows, uint64_t width, uint64_t height, uint64_t depth,
               uint64_t *ret_span);

/* The direction of a copy. */
enum copy_way {
    COPY_UP,     /* from the host's memory to a device's */
    COPY_DOWN,   /* the other way */
    COPY_WITHIN, /* between devices' memory, or between the host's */
    COPY_WAYS,
};

/* The direction of a copy between two addresses of the client. */
enum copy_way copy_way_of(const struct window *window, uint64_t dst, uint64_t src);

/* Counts a copy of so many bytes. */
void copy_count(struct session *session, enum copy_way way, uint64_t bytes);

/* From any thread: how many copies the client has made, and of how many bytes together. */
void copy_counters(const struct session *session, uint64_t *ret_count, uint64_t *ret_bytes);

/* From any thread: the bytes that went each way. */
void copy_direction_bytes(const struct session *session, uint64_t ret_bytes[COPY_WAYS]);

/* ---- the parts of devices and of a session: copy_state.c ---- */

struct copy_options {
    bool no_copy_load;     /* no preparation for many copying clients: FUNNEL_OFF=copy-load */
    bool no_shared_stream; /* FUNNEL_OFF=shared-copy-stream */
    bool no_copy_kernel;   /* FUNNEL_OFF=copy-kernel */
    bool no_address_scan;  /* FUNNEL_OFF=variable-moves */
};

/* The server's devices are initialized. 0 or -ENOMEM. */
int server_copies_init(struct server *server, const struct copy_options *options);
void server_copies_fini(struct server *server);
int session_copies_init(struct session *session);
void session_copies_fini(struct session *session);
