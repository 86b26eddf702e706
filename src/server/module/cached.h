/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded library in the module cache, as its users see it: what it has, and what it keeps between
 * launches. Functions may be called from any thread whose caller uses the library.
 */
#pragma once

#include "exclusive.h"
#include "kernel_table.h"
#include "library.h"

struct cached;
struct variables;

/* The library of an entry in use by the caller. */
const struct library *cached_library(const struct cached *cached);

/* The facts about its kernels. */
struct kernel_table *cached_kernels(struct cached *cached);

/* Whether other clients may use it, now or later. */
bool cached_is_shared(const struct cached *cached);

/* Whether it may have variables of the program. Clients do not write those of the compiler. */
bool cached_has_variables(const struct cached *cached);

/* Bytes of its variables on the device, or IMAGE_BYTES_UNKNOWN. */
uint64_t cached_variable_bytes(const struct cached *cached);

/* Whether its kernels may keep state between launches, so that the library serves one client. */
bool cached_has_state(const struct cached *cached);

/* The same for a client that may move: a WIRE_STATE_... */
uint32_t cached_state(const struct cached *cached);

/* Whether a variable that the client copies to goes with it in a planned move. Its addresses are
 * looked up, and the load has written none into it, which the client could copy out. */
bool cached_carries(const struct cached *cached, const char *name);

/* Its variables, with addresses and first values: NULL when they are not known. The caller uses the
 * library. */
const struct variables *cached_variables(const struct cached *cached);

/* Whether the driver may have loaded it, so that its variables may have changed. */
bool cached_is_loaded(const struct cached *cached);

/* Around a call `what` that looks a kernel or a variable of the library up in the driver. On the
 * session's thread, in the device's context. For the first such call the driver loads the library
 * and waits for all streams. The result is that of exclusive_begin() (exclusive.h); after an error
 * cached_query_end() must not be called. `session` may be NULL, on another thread, while no client
 * is busy. */
CUresult cached_query_begin(struct cached *cached, struct session *session, const char *what,
                            struct exclusive_call *call);
/* `result` is the call's. */
void cached_query_end(struct cached *cached, struct session *session, CUresult result,
                      struct exclusive_call *call);
