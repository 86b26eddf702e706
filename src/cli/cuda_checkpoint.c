/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-checkpoint: the options of NVIDIA's utility of that name, for programs of Funnel. A locked
 * program stands still with its memory on the GPU, a checkpointed one with it in host memory.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "command_client.h"
#include "fd.h"
#include "paths.h"
#include "snapshot.h"
#include "text.h"

static const char usage[] =
    "Usage: cuda-checkpoint --toggle --pid PID\n"
    "       cuda-checkpoint --get-state --pid PID\n"
    "       cuda-checkpoint --action lock|checkpoint|restore|unlock --pid PID [--timeout MS]\n"
    "       cuda-checkpoint --get-restore-tid --pid PID\n"
    "\n"
    "Funnel's stand-in for NVIDIA's utility, for the programs of the daemon that this user's\n"
    "programs reach.\n"
    "\n"
    "  --toggle           lock and checkpoint a running program; restore and unlock another\n"
    "  --get-state        print running, locked or checkpointed\n"
    "  --action lock      keep it from its next CUDA call, once its work on the GPU is done\n"
    "           checkpoint  move the GPU memory of a locked program to host memory\n"
    "           restore     move it back; the program stays locked\n"
    "           unlock      let a locked program go on\n"
    "  --timeout MS       of lock: give up after so many milliseconds, and after 30 s without it\n"
    "  --get-restore-tid  print the thread that restores: the main thread, since Funnel needs "
    "none\n"
    "  --pid PID          the process\n"
    "  -h, --help         print this\n"
    "\n"
    "Examples:\n"
    "  cuda-checkpoint --toggle --pid 4711\n"
    "  cuda-checkpoint --action lock --pid 4711 --timeout 5000\n"
    "\n"
    "`funnel checkpoint` writes the memory to a directory.\n";

enum state { RUNNING, LOCKED, CHECKPOINTED, UNKNOWN };

static const char *const state_names[] = {"running", "locked", "checkpointed"};

static int fail(const char *text)
{
    fprintf(stderr, "cuda-checkpoint: %s\n", text);
    return 1;
}

/* ---- the daemon ---- */

static int connect_daemon(int *ret_fd)
{
    char reason[COMMAND_REASON_MAX];
    struct paths paths;
    int error = paths_find_daemon(&paths);

    if (error)
        return fail(paths_error_text(error));
    return command_connect(&paths, ret_fd, reason) ? fail(reason) : 0;
}

/* The status of the command, or -errno; `ret_text` is its last line. */
static int receive_answer(int fd, int timeout_ms, char ret_text[COMMAND_TEXT_MAX])
{
    static union command_any message;
    size_t length;
    int kind;

    *ret_text = '\0';
    while ((kind = command_receive_within(fd, timeout_ms, &message, &length)) != COMMAND_DONE) {
        if (kind < 0)
            return kind;
        if (kind == COMMAND_OUTPUT)
            text_copy(ret_text, COMMAND_TEXT_MAX, message.text.text);
    }
    return message.done.status;
}

/* 0; -ETIMEDOUT; or 1 after an error message. */
static int order_within(const char *command, int pid, int timeout_ms)
{
    char line[64], text[COMMAND_TEXT_MAX];
    _cleanup_fd_ int fd = -1;

    text_format(line, sizeof(line), "%s %d", command, pid);
    if (connect_daemon(&fd))
        return 1;
    int status = command_send_line(fd, line);
    if (!status)
        status = receive_answer(fd, timeout_ms, text);
    if (status > 0)
        return fail(text);
    return !status || status == -ETIMEDOUT ? status : fail(strerror(-status));
}

static int order(const char *command, int pid)
{
    return order_within(command, pid, -1);
}

static enum state state_in(const struct snapshot *snapshot, int pid)
{
    for (unsigned i = 0; i < snapshot->client_count; i++) {
        const struct command_client *client = &snapshot->clients[i];

        if (client->seen_pid != pid && client->row.identity.pid != pid)
            continue;
        if (client->row.evicted)
            return RUNNING;
        return client->row.suspended == 2 ? LOCKED : client->row.suspended ? CHECKPOINTED : RUNNING;
    }
    return UNKNOWN;
}

static int read_state(int pid, enum state *ret_state)
{
    struct snapshot snapshot;
    _cleanup_fd_ int fd = -1;

    if (connect_daemon(&fd))
        return 1;
    int error = snapshot_read(fd, &snapshot);
    if (error)
        return fail(strerror(-error));
    *ret_state = state_in(&snapshot, pid);
    snapshot_fini(&snapshot);
    return *ret_state == UNKNOWN ? fail("the process is no program of this daemon") : 0;
}

/* ---- actions ---- */

/* The order that was too late is taken back. */
static int lock_program(int pid, int timeout_ms)
{
    int status = order_within("lock", pid, timeout_ms ? timeout_ms : -1);

    if (status != -ETIMEDOUT)
        return status;
    order("resume", pid);
    return fail("the program has not become idle within the timeout, and goes on");
}

static const struct action {
    const char *name, *command;
    enum state from;
} actions[] = {{"lock", "lock", RUNNING},
               {"checkpoint", "suspend", LOCKED},
               {"restore", "lock", CHECKPOINTED},
               {"unlock", "resume", LOCKED}};

static int run_action(const char *name, int pid, int timeout_ms)
{
    const struct action *action = actions;
    enum state state;
    char text[128];

    while (strcmp(action->name, name))
        if (++action == actions + sizeof(actions) / sizeof(*actions))
            return fail("--action takes lock, checkpoint, restore or unlock");
    if (read_state(pid, &state))
        return 1;
    if (state != action->from) {
        text_format(text, sizeof(text), "%s takes a program that is %s; this one is %s", name,
                    state_names[action->from], state_names[state]);
        return fail(text);
    }
    return state == RUNNING ? lock_program(pid, timeout_ms) : order(action->command, pid);
}

static int toggle(int pid)
{
    enum state state;

    if (read_state(pid, &state))
        return 1;
    return order(state == CHECKPOINTED ? "resume" : "suspend", pid);
}

static int print_state(int pid)
{
    enum state state;

    if (read_state(pid, &state))
        return 1;
    puts(state_names[state]);
    return 0;
}

static int print_thread(int pid)
{
    enum state state;

    if (read_state(pid, &state))
        return 1;
    printf("%d\n", pid);
    return 0;
}

/* ---- the command line ---- */

struct choice {
    int (*run)(int pid);
    const char *action;
    uint64_t pid, timeout_ms;
};

static int wrong_usage(const char *text)
{
    fail(text);
    fputs("cuda-checkpoint --help lists the options\n", stderr);
    return 1;
}

static int take_option(struct choice *choice, int option, const char *value)
{
    switch (option) {
    case 't':
        choice->run = toggle;
        return 0;
    case 's':
        choice->run = print_state;
        return 0;
    case 'r':
        choice->run = print_thread;
        return 0;
    case 'a':
        choice->action = value;
        return 0;
    case 'p':
        return text_to_u64(value, &choice->pid) || !choice->pid || choice->pid > INT_MAX
                   ? wrong_usage("--pid takes the number of a process")
                   : 0;
    case 'o':
        return text_to_u64(value, &choice->timeout_ms) || choice->timeout_ms > INT_MAX
                   ? wrong_usage("--timeout takes a number of milliseconds")
                   : 0;
    default:
        return wrong_usage("unknown option, or its value is missing");
    }
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"toggle", no_argument, NULL, 't'},
                                          {"get-state", no_argument, NULL, 's'},
                                          {"get-restore-tid", no_argument, NULL, 'r'},
                                          {"action", required_argument, NULL, 'a'},
                                          {"pid", required_argument, NULL, 'p'},
                                          {"timeout", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct choice choice = {0};
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
        if (option == 'h')
            return fputs(usage, stdout) < 0;
        if (take_option(&choice, option, optarg))
            return 1;
    }
    if (optind < argc || !choice.pid || !choice.run == !choice.action)
        return wrong_usage("name one action and --pid");
    return choice.action ? run_action(choice.action, (int)choice.pid, (int)choice.timeout_ms)
                         : choice.run((int)choice.pid);
}
