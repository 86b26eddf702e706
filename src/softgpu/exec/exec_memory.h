/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of everything that touches memory.
 */
#pragma once

#include "core.h"

/* Of a budget counted in backward jumps. */
#define SYNCHRONISING_COST 32

void warp_synchronises(struct warp *warp);

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

/* Of 128 bits: d in two registers, or none; b and c in two each. */
void run_exchange_b128(struct warp *warp, const struct insn *insn);
void run_compare_and_swap_b128(struct warp *warp, const struct insn *insn);

void run_copy_local(struct warp *warp, const struct insn *insn);
void run_copy_async(struct warp *warp, const struct insn *insn);
void run_save_registers(struct warp *warp, const struct insn *insn);
void run_restore_registers(struct warp *warp, const struct insn *insn);
