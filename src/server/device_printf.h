/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that kernels print, on its way to the client whose kernels they are. A driver keeps one
 * buffer for the whole context and does not say who filled it, so clients whose kernels may print
 * take turns; the others pay one look at a flag.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backlog.h"
#include "list.h"

struct session;
struct stream;

/* The part of a session that device_printf.c looks after, under its own lock. */
struct session_printf {
    atomic_bool active; /* its fences have to wait for text */
    struct list link;   /* while active */
    struct backlog backlog;
};

/* Around the launch of a kernel that may print. The first may wait for another client's kernels; an
 * error means that there is to be no launch. */
CUresult device_printf_begin(struct session *session);
void device_printf_end(struct stream *stream);

/* While prints.active: has the fence written once the work before it is done and its text handed
 * over. False when that can not be. */
bool device_printf_fence(struct stream *stream, uint32_t seq);

/* A stream is about to be destroyed. */
void device_printf_forget_stream(struct stream *stream);

/* A session's streams are at rest and it is about to end. */
void device_printf_forget(struct session *session);

/* The context is lost: what was printed before goes to whoever had the turn. The caller holds the
 * server's lock and is about to end the process. */
void device_printf_fault(void);
