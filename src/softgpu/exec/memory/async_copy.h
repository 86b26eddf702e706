/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler of cp.async.
 */
#pragma once

#include "warp_state.h"

/* Compiled for several ISA variants. */
extern const handler_fn copy_async_base, copy_async_v3, copy_async_v4;
/* Of the best variant that runs here. Any thread may call it. */
handler_fn copy_async_handler(void);
