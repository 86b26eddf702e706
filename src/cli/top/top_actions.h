/* SPDX-License-Identifier: Apache-2.0 */
/* What keys and clicks do in `funnel top`. */
#pragma once

#include "top_screen_state.h"

/* A key as getch() tells it: false to quit. */
bool top_handle_key(struct screen *screen, int key);
