/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose memory can leave their devices: by an order of the operator (program_suspend.h),
 * because others need room (eviction.h), or because they rest for long (rest_eviction.h).
 */
#pragma once

#include "eviction.h"
#include "program_suspend.h"
#include "rest_eviction.h"
#include "server.h"
#include "session.h"

/* Of one server. */
struct server_swapping {
    struct server_eviction eviction;
    unsigned orders; /* so far; under the server's lock */
};

/* Of one session. */
struct session_swapping {
    struct program_suspend order;
    struct session_eviction eviction;
    struct rest_eviction rest;
};

/* Registers the part of each session, too: 0 or -ENOMEM. */
int server_swapping_init(struct server *server);
void server_swapping_fini(struct server *server);
