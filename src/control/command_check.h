/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the answers that a daemon sends to a front end. */
#pragma once

#include "command_protocol.h"

/* Checks a received message of a known kind and whole size. Afterwards its texts end in a NUL and
 * are safe to show in a terminal. Its counts do not exceed their arrays, and its numbers can be
 * reckoned with. */
void command_make_safe(union command_any *message);
