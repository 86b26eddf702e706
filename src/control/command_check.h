/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the answers that a daemon sends to a front end. */
#pragma once

#include "command_protocol.h"

/* A message of a known kind and whole size, as it was received: afterwards its texts are ended and
 * can be shown in a terminal, its counts are no larger than the arrays that they count, and its
 * numbers are ones that can be reckoned with. */
void command_make_safe(union command_any *message);
