/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A funnel-server of a test's own, on the software GPU, that takes clients without a daemon.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct server_process {
    char folder[64];
    char socket[96];
    char log[96];
    pid_t pid;
};

/* Starts one and waits until it listens: false when it does not within ten seconds. The program is
 * named by FUNNEL_TEST_SERVER. */
bool server_process_start(struct server_process *process);

/* Is it still the same process, alive? */
bool server_process_alive(const struct server_process *process);

/* Waits for its end: the exit status, or -1 after ten seconds. */
int server_process_wait(struct server_process *process);

/* Ends it and removes its folder. */
void server_process_stop(struct server_process *process);

/* How many bytes it has logged. */
long server_process_log_size(const struct server_process *process);

/* The sum of the numbers that follow `text` in its log. */
unsigned long server_process_log_sum(const struct server_process *process, const char *text);
