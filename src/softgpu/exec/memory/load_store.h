/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of loads and stores.
 */
#pragma once

#include "warp_state.h"

enum access_kind {
    ACCESS_U8,
    ACCESS_S8,
    ACCESS_U16,
    ACCESS_S16,
    ACCESS_B32,
    ACCESS_B64,
    ACCESS_COUNT,
};

struct access_handler {
    handler_fn run;
    team_handler_fn in_team;
};

struct access_handlers {
    struct access_handler load; /* of one element */
    struct access_handler store;
    handler_fn load_vector; /* of 2 or 4 */
    handler_fn store_vector;
    handler_fn load_param; /* of the kernel, at an offset that was checked when decoded */
};

/* Any thread may call the functions. */
extern const struct access_handlers access_handlers_base[ACCESS_COUNT];
extern const struct access_handlers access_handlers_v3[ACCESS_COUNT];
extern const struct access_handlers access_handlers_v4[ACCESS_COUNT];
const struct access_handlers *access_handlers(enum access_kind kind);
/* The handler that does in several warps what this one, a load or a store, does in one; or NULL. */
team_handler_fn access_team_handler(handler_fn run);
