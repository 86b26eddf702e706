/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of keys and clicks in `funnel top`. */
#pragma once

#include "top_screen_state.h"

/* A key as getch() tells it: false to quit. */
bool top_handle_key(struct screen *screen, int key);
