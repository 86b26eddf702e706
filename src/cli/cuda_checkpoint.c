/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-checkpoint: the options of NVIDIA's utility of that name, for programs of Funnel. A locked
 * program stands still with its memory on the GPU, a checkpointed one with it in host memory.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "process_checkpoint.h"
#include "text.h"

#define LOCK_TIMEOUT_MS 30000 /* without --timeout */

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
    "  --timeout MS       of lock: give up after so many milliseconds (30000); 0 = never\n"
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

static int fail(const char *text)
{
    fprintf(stderr, "cuda-checkpoint: %s\n", text);
    return 1;
}

/* ---- actions ---- */

static int run_action(const struct paths *daemon, int pid, const char *name, unsigned timeout_ms)
{
    static const char *const names[] = {"lock", "checkpoint", "restore", "unlock"};
    char reason[PROCESS_REASON_MAX];

    for (int i = PROCESS_LOCK; i <= PROCESS_UNLOCK; i++)
        if (!strcmp(name, names[i]))
            return process_act(daemon, pid, i, timeout_ms, reason) ? fail(reason) : 0;
    return fail("--action takes lock, checkpoint, restore or unlock");
}

static int toggle(const struct paths *daemon, int pid)
{
    char reason[PROCESS_REASON_MAX];

    return process_toggle(daemon, pid, reason) ? fail(reason) : 0;
}

static int print_state(const struct paths *daemon, int pid)
{
    char reason[PROCESS_REASON_MAX];
    struct process process;

    if (process_find(daemon, pid, &process, reason))
        return fail(reason);
    puts(process_state_name(process.state));
    return 0;
}

static int print_thread(const struct paths *daemon, int pid)
{
    char reason[PROCESS_REASON_MAX];
    struct process process;

    if (process_find(daemon, pid, &process, reason))
        return fail(reason);
    printf("%d\n", pid);
    return 0;
}

/* ---- the command line ---- */

struct choice {
    int (*run)(const struct paths *daemon, int pid);
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

static int run_choice(const struct choice *choice)
{
    struct paths daemon;
    int error = paths_find_daemon(&daemon);

    if (error)
        return fail(paths_error_text(error));
    return choice->action
               ? run_action(&daemon, (int)choice->pid, choice->action, (unsigned)choice->timeout_ms)
               : choice->run(&daemon, (int)choice->pid);
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
    struct choice choice = {.timeout_ms = LOCK_TIMEOUT_MS};
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
    return run_choice(&choice);
}
