/* SPDX-License-Identifier: Apache-2.0 */
/* Small copies that a client has sent together. */
#pragma once

#include <stdint.h>

#include "server_dispatch.h"

/* The bytes of all copies, valid or not. */
uint64_t copy_batch_bytes(const struct wire_fnCopyBatch *in);
