/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of NVIDIA's cuda-checkpoint, and the actions that lead from one to the next, as orders
 * to a daemon. A locked program stands still with its memory on the GPU, and a checkpointed one
 * with it in host memory.
 *
 *     RUNNING ── lock ──> LOCKED ── checkpoint ──> CHECKPOINTED
 *     RUNNING <─ unlock ─ LOCKED <─── restore ──── CHECKPOINTED
 *
 * Functions may be called from any thread. They return 0, or a negative error number when the
 * daemon is not there or does not answer. -ESRCH: the process is no program of the daemon that this
 * user may see. `ret_reason` is a sentence for people then.
 */
#pragma once

#include <stdint.h>

#include "command_client.h"

#define PROCESS_REASON_MAX COMMAND_TEXT_MAX

enum process_state { PROCESS_RUNNING, PROCESS_LOCKED, PROCESS_CHECKPOINTED };

/* `pid` is the number that the calling process sees. */
struct process {
    int pid;
    enum process_state state;
    int32_t daemon_pid;                           /* its number for the daemon */
    unsigned device_count;                        /* of the devices that it uses */
    uint8_t device_uuids[SERVER_MAX_DEVICES][16]; /* theirs */
};

int process_find(const struct paths *daemon, int pid, struct process *ret_process,
                 char ret_reason[PROCESS_REASON_MAX]);

enum process_action { PROCESS_LOCK, PROCESS_CHECKPOINT, PROCESS_RESTORE, PROCESS_UNLOCK };

/* -EINVAL, too: the program is in another state than the action leads from. Or why the server has
 * not done it, a number of suspend_result.h. -ETIMEDOUT, and a running program: it has not been
 * idle within `timeout_ms`. Only PROCESS_LOCK looks at that; 0 = it may take as long as it likes.
 */
int process_act(const struct paths *daemon, int pid, enum process_action action,
                unsigned timeout_ms, char ret_reason[PROCESS_REASON_MAX]);

/* Locks and checkpoints a running program, or checkpoints a locked one; restores and unlocks one
 * that is checkpointed. */
int process_toggle(const struct paths *daemon, int pid, char ret_reason[PROCESS_REASON_MAX]);

const char *process_state_name(enum process_state state);
