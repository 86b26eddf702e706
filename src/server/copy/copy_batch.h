/* SPDX-License-Identifier: Apache-2.0 */
/* Small copies that a client has sent together. */
#pragma once

#include <stdint.h>

#include "server_dispatch.h"

/* How many bytes all of them have, whether they are valid or not. */
uint64_t copy_batch_bytes(const struct wire_fnCopyBatch *in);
