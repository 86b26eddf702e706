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

struct access_handlers {
    handler_fn load;
    handler_fn load_param; /* of the kernel, at an offset that was checked when decoded */
    handler_fn store;
};

extern const struct access_handlers access_handlers_base[ACCESS_COUNT];
extern const struct access_handlers access_handlers_v3[ACCESS_COUNT];
extern const struct access_handlers access_handlers_v4[ACCESS_COUNT];
const struct access_handlers *access_handlers(enum access_kind kind);
