/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping the server under test.
 */
#include "server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "peer.h"
#include "sock.h"

static void run_server(const struct server_process *process)
{
    const char *program = getenv("FUNNEL_TEST_SERVER");
    int log = open(process->log, O_CREAT | O_APPEND | O_WRONLY, 0600);

    /* The server of a test that is killed ends with it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDERR_FILENO);
    setenv("FUNNEL_SOFT_DEVICES", "1:sms=4,mem=1G", 1);
    setenv("FUNNEL_QUOTAS", "host-memory=256M", 0); /* a test may have set its own */
    execl(program, program, "--device", "soft", "--listen", process->socket, (char *)NULL);
    _exit(127);
}

static bool listens(const struct server_process *process)
{
    int fd = -1;

    if (sock_connect(process->socket, &fd))
        return false;
    fd_close(&fd);
    return true;
}

bool server_process_start(struct server_process *process)
{
    strcpy(process->folder, "/tmp/funnel-hostile-XXXXXX");
    if (!mkdtemp(process->folder))
        return false;
    snprintf(process->socket, sizeof(process->socket), "%s/socket", process->folder);
    snprintf(process->log, sizeof(process->log), "%s/log", process->folder);
    process->pid = fork();
    if (process->pid == 0)
        run_server(process);
    for (int waited = 0; waited < TIMEOUT_MS; waited += 10) {
        if (listens(process))
            return true;
        if (!server_process_alive(process))
            break;
        usleep(10000);
    }
    return false;
}

bool server_process_alive(const struct server_process *process)
{
    siginfo_t info = {0};

    return !waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

int server_process_wait(struct server_process *process)
{
    int status = 0;

    for (int waited = 0; waited < TIMEOUT_MS; waited += 10) {
        if (waitpid(process->pid, &status, WNOHANG) == process->pid) {
            process->pid = -1;
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        usleep(10000);
    }
    return -1;
}

static void print_log(const struct server_process *process)
{
    char command[128];

    snprintf(command, sizeof(command), "tail -n 40 %s >&2", process->log);
    if (system(command))
        fprintf(stderr, "no log\n");
}

void server_process_stop(struct server_process *process)
{
    if (getenv("FUNNEL_TEST_VERBOSE"))
        print_log(process);
    if (process->pid > 0) {
        kill(process->pid, SIGTERM);
        if (server_process_wait(process) < 0 && process->pid > 0) {
            kill(process->pid, SIGKILL);
            waitpid(process->pid, NULL, 0);
        }
    }
    unlink(process->socket);
    unlink(process->log);
    rmdir(process->folder);
}

long server_process_log_size(const struct server_process *process)
{
    struct stat status;

    return stat(process->log, &status) ? -1 : (long)status.st_size;
}

unsigned long server_process_log_sum(const struct server_process *process, const char *text)
{
    FILE *log = fopen(process->log, "r");
    unsigned long sum = 0;
    char line[1024];

    while (log && fgets(line, sizeof(line), log)) {
        const char *found = strstr(line, text);

        sum += found ? strtoul(found + strlen(text), NULL, 10) : 0;
    }
    if (log)
        fclose(log);
    return sum;
}
