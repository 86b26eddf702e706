/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that speaks the wire protocol directly, and may send anything, valid or not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach.h"
#include "channel.h"
#include "wire_calls.h"

#define TIMEOUT_MS 60000 /* after which something has gone wrong, on the busiest machine */

struct peer {
    int socket;
    int fds[ATTACH_FDS];
    struct attach_offer offer;
    struct channel channel;
    unsigned char *gpu; /* the GPU-visible region, at any address */
    uint32_t next_handle;
};

/* A hello that any server takes. */
struct hello peer_hello(void);

/* Connects and says nothing. */
bool peer_connect(struct peer *peer, const char *path);

/* Waits for an offer: false when the server refuses (its welcome is in peer->offer) or hangs up. */
bool peer_receive_offer(struct peer *peer);

/* Answers an offer. */
bool peer_answer(struct peer *peer, uint32_t verdict);

/* The whole of it: connected, attached, its region mapped. */
bool peer_attach(struct peer *peer, const char *path);

/* The same with another hello. */
bool peer_attach_as(struct peer *peer, const char *path, const struct hello *hello);

/* The same over a socket whose other end the server has got, with the hello, from a daemon. */
bool peer_adopt(struct peer *peer, int socket);

/* Closes the connection, in whatever state the peer is. */
void peer_leave(struct peer *peer);

/* Has the server hung up within ten seconds? */
bool peer_is_cut_off(struct peer *peer);

/* A handle as the client library would mint it. */
uint64_t peer_handle(struct peer *peer, enum wire_handle kind);

/* Puts raw bytes into the ring as one message. `size` includes the header of 8 bytes. */
bool peer_send_raw(struct peer *peer, uint32_t kind, const void *payload, uint32_t size);

/* Sends a launch with the parameters that it points to; the caller holds the channel's lock. */
bool peer_launch(struct peer *peer, const struct wire_cuLaunchKernelEx *in);

/* Sends a fence. */
bool peer_fence(struct peer *peer, uint64_t stream, uint32_t seq);

/* Waits until the fence word holds at least `seq`: false after ten seconds, or once cut off. */
bool peer_wait_fence(struct peer *peer, uint32_t word, uint32_t seq);

/* Where window address `address` of the GPU-visible region lies in this process. */
void *peer_staging(struct peer *peer, uint64_t offset);
