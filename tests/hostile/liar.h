/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that lies to the client library of a victim. It offers a window, answers commands and
 * shares memory as a server does, but for one kind of lie.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach.h"
#include "channel_server.h"

#define LIAR_CONNECTIONS 3u /* of one victim; after these, the server is gone for good */

enum lie {
    LIE_OFFER,
    LIE_DEVICES,
    LIE_ANSWERS,
    LIE_MEMORY,
    LIE_DESCRIPTORS,
    LIE_SUMS,
    LIE_END, /* the first servers end after their offers, the last one is honest */
    LIE_COUNT,
};

struct liar {
    enum lie lie;
    int listener, socket;
    struct channel_server *channel;
    struct attach_offer offer;
    unsigned char *gpu;
    uint64_t next_address;
    uint64_t quiet_since;
    unsigned connections;
    bool believed; /* the victim has attached */
};

/* What all lies are drawn from, and how many questions of victims have been answered. */
extern uint64_t liar_seed;
extern uint64_t liar_answers;

/* Takes the next connection at `listener`, and offers a window there. */
void liar_accept(struct liar *liar);

/* Answers what the victim has asked. Hangs up on one that has gone or asks nothing more. */
void liar_serve(struct liar *liar);

/* Ends the connection, if there is one. */
void liar_hang_up(struct liar *liar);
