/* SPDX-License-Identifier: Apache-2.0 */
/* See process_checkpoint.h. */
#include "process_checkpoint.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "fd.h"
#include "snapshot.h"
#include "suspend_result.h"
#include "text.h"

static int fail(char *reason, int error, const char *text)
{
    text_copy(reason, PROCESS_REASON_MAX, text);
    return error;
}

static int fail_with(char *reason, int error)
{
    return fail(reason, error, strerror(-error));
}

static int connect_to(const struct paths *daemon, int *ret_fd, char *ret_reason)
{
    char reason[COMMAND_REASON_MAX];
    int error = command_connect(daemon, ret_fd, reason);

    return error ? fail(ret_reason, error, reason) : 0;
}

/* ---- states ---- */

const char *process_state_name(enum process_state state)
{
    static const char *const names[] = {"running", "locked", "checkpointed"};

    return names[state];
}

/* An evicted program goes on by itself. */
static enum process_state state_of(const struct server_status_row *row)
{
    if (row->evicted || !row->suspended)
        return PROCESS_RUNNING;
    return row->suspended == 2 ? PROCESS_LOCKED : PROCESS_CHECKPOINTED;
}

static void add_devices(const struct command_server *server, uint64_t mask, struct process *process)
{
    for (unsigned i = 0; i < server->device_count; i++)
        if (mask >> i & 1)
            memcpy(process->device_uuids[process->device_count++], server->devices[i].uuid,
                   sizeof(server->devices[i].uuid));
}

static int find_in(const struct snapshot *snapshot, int pid, struct process *ret_process)
{
    for (unsigned i = 0; i < snapshot->client_count; i++) {
        const struct command_client *client = &snapshot->clients[i];

        if (client->seen_pid != pid)
            continue;
        *ret_process = (struct process){
            .pid = pid, .state = state_of(&client->row), .daemon_pid = client->row.identity.pid};
        add_devices(snapshot_server_of(snapshot, client), client->row.device_mask, ret_process);
        return 0;
    }
    return -ESRCH;
}

int process_find(const struct paths *daemon, int pid, struct process *ret_process,
                 char ret_reason[PROCESS_REASON_MAX])
{
    struct snapshot snapshot;
    _cleanup_fd_ int fd = -1;
    int error = connect_to(daemon, &fd, ret_reason);

    if (error)
        return error;
    error = snapshot_read(fd, &snapshot);
    if (error)
        return fail_with(ret_reason, error);
    error = pid > 0 ? find_in(&snapshot, pid, ret_process) : -ESRCH;
    snapshot_fini(&snapshot);
    return error ? fail(ret_reason, error, "the process is no program of this daemon") : 0;
}

/* ---- orders ---- */

/* 0, an enum suspend_result, or -errno; `ret_reason` is the last line of the answer. */
static int receive_answer(int fd, int timeout_ms, char *ret_reason)
{
    _cleanup_free_ union command_any *message = malloc(sizeof(*message));
    size_t length;
    int kind = message ? 0 : -ENOMEM;

    while (kind >= 0 && kind != COMMAND_DONE) {
        kind = command_receive_within(fd, timeout_ms, message, &length);
        if (kind == COMMAND_OUTPUT)
            text_copy(ret_reason, PROCESS_REASON_MAX, message->text.text);
    }
    if (kind < 0)
        return fail_with(ret_reason, kind);
    if (message->done.status == COMMAND_OK)
        return 0;
    return message->done.reason ? message->done.reason : SUSPEND_FAILED;
}

static int order_within(const struct paths *daemon, const char *command,
                        const struct process *process, int timeout_ms, char *ret_reason)
{
    char line[64];
    _cleanup_fd_ int fd = -1;
    int error = connect_to(daemon, &fd, ret_reason);

    if (error)
        return error;
    text_format(line, sizeof(line), "%s %d", command, (int)process->daemon_pid);
    error = command_send_line(fd, line);
    return error ? fail_with(ret_reason, error) : receive_answer(fd, timeout_ms, ret_reason);
}

static int order(const struct paths *daemon, const char *command, const struct process *process,
                 char *ret_reason)
{
    return order_within(daemon, command, process, -1, ret_reason);
}

/* ---- actions ---- */

/* Milliseconds, at least 1; -1 = no limit. */
static int time_left(uint64_t deadline)
{
    uint64_t now = clock_ns(), left = deadline > now ? (deadline - now) / NS_PER_MS : 0;

    if (!deadline)
        return -1;
    return left < INT_MAX ? (int)left + (left == 0) : INT_MAX;
}

/* The server gives up after a while, and is asked again. An order that was too late is taken back.
 */
static int lock_process(const struct paths *daemon, const struct process *process,
                        unsigned timeout_ms, char *ret_reason)
{
    uint64_t deadline = timeout_ms ? clock_ns() + timeout_ms * NS_PER_MS : 0;
    char unheard[PROCESS_REASON_MAX];
    int status;

    do
        status = order_within(daemon, "lock", process, time_left(deadline), ret_reason);
    while (status == SUSPEND_BUSY && (!deadline || clock_ns() < deadline));
    if (status != -ETIMEDOUT && status != SUSPEND_BUSY)
        return status;
    order(daemon, "resume", process, unheard);
    return fail(ret_reason, -ETIMEDOUT,
                "the program has not become idle within the timeout, and goes on");
}

static const struct action {
    const char *name, *command;
    enum process_state from;
} actions[] = {
    [PROCESS_LOCK] = {"lock", "lock", PROCESS_RUNNING},
    [PROCESS_CHECKPOINT] = {"checkpoint", "suspend", PROCESS_LOCKED},
    [PROCESS_RESTORE] = {"restore", "lock", PROCESS_CHECKPOINTED},
    [PROCESS_UNLOCK] = {"unlock", "resume", PROCESS_LOCKED},
};

static int refuse_state(const struct action *action, enum process_state state, char *ret_reason)
{
    text_format(ret_reason, PROCESS_REASON_MAX, "%s takes a program that is %s; this one is %s",
                action->name, process_state_name(action->from), process_state_name(state));
    return -EINVAL;
}

int process_act(const struct paths *daemon, int pid, enum process_action which, unsigned timeout_ms,
                char ret_reason[PROCESS_REASON_MAX])
{
    const struct action *action = &actions[which];
    struct process process;
    int error = process_find(daemon, pid, &process, ret_reason);

    if (error)
        return error;
    if (process.state != action->from)
        return refuse_state(action, process.state, ret_reason);
    return which == PROCESS_LOCK ? lock_process(daemon, &process, timeout_ms, ret_reason)
                                 : order(daemon, action->command, &process, ret_reason);
}

int process_toggle(const struct paths *daemon, int pid, char ret_reason[PROCESS_REASON_MAX])
{
    struct process process;
    int error = process_find(daemon, pid, &process, ret_reason);

    if (error)
        return error;
    return order(daemon, process.state == PROCESS_CHECKPOINTED ? "resume" : "suspend", &process,
                 ret_reason);
}
