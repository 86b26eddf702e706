/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an order does with the memory of a program that stands still. It leaves the devices for the
 * pool or a file, is copied to a checkpoint, or returns. All is the session's thread's; the results
 * are in the log.
 */
#pragma once

#include "session.h"
#include "suspend_result.h"
#include "swapping.h"

static inline struct program_suspend *program_suspend_of(const struct session *session)
{
    return &session->swapping->order;
}

static inline bool suspend_is_checkpoint(const struct session *session)
{
    return program_suspend_of(session)->adopted.kind == SERVER_SUSPEND_SAVE;
}

static inline bool suspend_is_detached(const struct session *session)
{
    return program_suspend_of(session)->adopted.kind == SERVER_SUSPEND_DETACH;
}

/* SUSPEND_OK, or why the memory cannot leave as the order says. Changes nothing. */
enum suspend_result suspend_obstacle(struct session *session);

/* Does what the order says, while the session is `leaving`. After SUSPEND_OK a checkpoint has only
 * begun: suspend_end_checkpoint(). After an error the client goes on. */
enum suspend_result suspend_leave_device(struct session *session);

/* Waits for the rest of the checkpoint's file. */
enum suspend_result suspend_end_checkpoint(struct session *session);

/* Brings the memory back to the devices. After an error the client stays as it is. */
enum suspend_result suspend_return(struct session *session);
