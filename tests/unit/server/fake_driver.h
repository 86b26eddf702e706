/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that only records the calls that it gets, and a session on it without client and thread.
 * Streams and events are numbered in the order in which they are created.
 */
#pragma once

#include "function.h"
#include "server.h"
#include "server_dispatch.h"
#include "stream.h"
#include "unit.h"
#include "window.h"

struct fake {
    char trace[4096]; /* "record e1 s2; wait s3 e1; " */
    CUresult refusal; /* what the next call that can fail returns; then it is CUDA_SUCCESS again */
    unsigned streams, events, granules, execs, libraries;
    int attributes[16];
    uint64_t free_bytes;
    CUmemAllocationProp made; /* of the last memory */
};

extern struct fake fake;

/* Slots for streams and graphs beside those of a new context: enough for what tests create. */
#define FIXTURE_CAPACITY 4096u

/* One device of 1 GiB, one client. */
struct fixture {
    struct server server;
    struct window window;
    struct session *session;
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

/* The same with a client at the other end of the session's socket, server.life->control_fd, which
 * takes the descriptors that come with granules. */
int fixture_setup_connected(void **state);
int fixture_teardown_connected(void **state);

/* A handle as a client would choose it. */
uint64_t fixture_handle(enum wire_handle kind, uint32_t index);

/* The trace since the last call of this function. */
const char *fake_trace(void);

/* From now on the driver takes attributes of nodes, as a new driver does. */
void fake_gives_nodes_priorities(void);

/* An image of text, as a client would have sent it; for stored_image_unref(). */
struct stored_image *fixture_image(struct fixture *fixture, const char *text);

/* Makes stream number `index` with fence word `index`; it has the handle of that index. */
struct stream *fixture_stream(struct fixture *fixture, uint32_t index, uint32_t flags);
