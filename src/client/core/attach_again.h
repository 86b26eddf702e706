/* SPDX-License-Identifier: Apache-2.0 */
/* From one server to another: the client's window, its words and its devices stay what they are. */
#pragma once

#include "client.h"

/* For a client whose server has ended: attaches to another one. It offers the same window and
 * devices, and knows nothing else of the client yet. No other thread is inside the library. On
 * failure `why` gets a message. */
bool attach_again(char *why, size_t why_size);
