/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the decoders of memory accesses: modifiers, addresses, accesses of 128 bits. False
 * means that the builder has failed.
 */
#pragma once

#include "builder.h"
#include "tokens.h"

/* The modifiers of an access. */
struct access {
    enum ptx_space space;
    enum ptx_type type;
    uint8_t width;     /* elements: 1, 2 or 4 */
    bool synchronizes; /* others may be waiting for it, or it for others */
    bool releases;
    bool has_hint; /* a last operand for the cache, which we do not have */
};
