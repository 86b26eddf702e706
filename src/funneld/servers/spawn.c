/* SPDX-License-Identifier: Apache-2.0 */
/* See spawn.h. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "claims.h"
#include "fd.h"
#include "feature.h"
#include "funnel_errors.h"
#include "server_file.h"
#include "server_protocol.h"
#include "sock.h"
#include "text.h"

/* CUresults: the control plane has no CUDA header. */

#define FIRST_SPARE_FD (SERVER_RETURN_FD + 1) /* above anything dup2 below writes to */

/* Root's variables that a user's server may have: /proc shows them to that user. */
static const char *const passed_on[] = {
    "PATH=", "LANG=", "LC_", "TZ=", "CUDA_", "FUNNEL_", "NVIDIA_", "LD_LIBRARY_PATH="};

extern char **environ;

static void filter_environment(void)
{
    int kept = 0;

    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
            if (text_starts_with(*variable, passed_on[i])) {
                environ[kept++] = *variable;
                break;
            }
    environ[kept] = NULL;
}

/* A daemon started under `funnel run` has our client library preloaded; a server must not. */
static void drop_client_preload(void)
{
    const char *preload = getenv("LD_PRELOAD");

    if (preload && strstr(preload, "libcuda.so"))
        unsetenv("LD_PRELOAD");
}

_Noreturn static void fail(int status, const char *what)
{
    struct server_failed message;
    int error = errno;

    server_message_init(&message, SERVER_FAILED, 0);
    message.status = status;
    text_format(message.text, sizeof(message.text), "The server could not be started: %.300s: %s",
                what, strerror(error));
    sock_send(SERVER_CONTROL_FD, &message, sizeof(message), NULL, 0);
    _exit(127);
}

/* 0 to 6 get their places, all others are closed. */
static void arrange_descriptors(int control_fd, int log_fd, int claims_fd, int listen_fd)
{
    int control = fcntl(control_fd, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    int log = fcntl(log_fd, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    int claims = fcntl(claims_fd, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    int listener = listen_fd < 0 ? -1 : fcntl(listen_fd, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (control < 0 || log < 0 || claims < 0 || null < 0) {
        dup2(control_fd, SERVER_CONTROL_FD);
        fail(FUNNEL_ERROR_MPS_CONNECTION_FAILED, "its descriptors");
    }
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    dup2(control, SERVER_CONTROL_FD);
    dup2(log, SERVER_LOG_FD);
    dup2(claims, SERVER_CLAIMS_FD);
    if (listener >= 0)
        dup2(listener, SERVER_RETURN_FD);
    syscall(SYS_close_range, SERVER_CLAIMS_FD + (listener < 0 ? 1 : 2), ~0u, 0);
}

static void restore_signals(void)
{
    static const int changed[] = {SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGCHLD};
    sigset_t none;

    for (size_t i = 0; i < sizeof(changed) / sizeof(*changed); i++)
        signal(changed[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* All but its user id, which the server takes itself. Between execve() and its first own steps a
 * process may be traced by its user, who would take its descriptors. So that program starts as the
 * daemon's user (server/sandbox/sandbox.h). */
static void take_groups(const struct spawn *spawn)
{
    const struct passwd *entry = getpwuid(spawn->uid);
    gid_t gid = entry ? entry->pw_gid : spawn->gid;
    int error = entry ? initgroups(entry->pw_name, gid) : setgroups(1, &gid);

    if (error || setresgid(gid, gid, gid))
        fail(FUNNEL_ERROR_NOT_PERMITTED, "cannot take the groups of the client's user");
    if (entry)
        setenv("HOME", entry->pw_dir, 1);
}

/* The server's name of a device that the daemon calls `name`. */
static void visible_device(const char *own, const char *name, char *ret_name, size_t capacity)
{
    uint64_t skip;

    if (!own || text_to_u64(name, &skip)) {
        text_copy(ret_name, capacity, name);
        return;
    }
    for (; skip && *own; skip--)
        own += strcspn(own, ",") + (strchr(own, ',') != NULL);
    text_format(ret_name, capacity, "%.*s", (int)strcspn(own, ","), own);
}

/* Ordinals count among the daemon's devices, which its own variable may name. */
static void show_devices(const char *allowed)
{
    const char *own = getenv("CUDA_VISIBLE_DEVICES");
    char list[1024] = "", names[256], *rest = NULL;

    text_copy(names, sizeof(names), allowed);
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        size_t used = strlen(list);

        text_format(list + used, sizeof(list) - used, "%s", used ? "," : "");
        used = strlen(list);
        visible_device(own, name, list + used, sizeof(list) - used);
    }
    setenv("CUDA_VISIBLE_DEVICES", list, 1);
}

/* A driver that loads code expands it into fresh memory, and every other of its microseconds went
 * into page faults. */
static void use_huge_pages(void)
{
    setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 0);
}

/* A server speaks through descriptors that it is given, so it needs no network. Without the right
 * to leave the daemon's it stays there. CRIU finds sockets only in the network of the process that
 * it dumps, and a client has some that its server has made. */
static void leave_network(void)
{
    if (!feature_is_off(FEATURE_SANDBOX) && !feature_is_off(FEATURE_SERVER_NETWORK))
        unshare(CLONE_NEWNET);
}

_Noreturn static void run_child(const struct spawn *spawn, int control_fd)
{
    const char *arguments[8] = {"funnel-server", "--device", spawn->device};
    unsigned count = 3;
    char uid[16];

    restore_signals();
    if (spawn->state_fd >= 0)
        server_file_enter_process(spawn->state_fd);
    arrange_descriptors(control_fd, spawn->log_fd, spawn->claims_fd, spawn->listen_fd);
    drop_client_preload();
    leave_network();
    if (spawn->uid != geteuid()) {
        filter_environment();
        take_groups(spawn);
        text_format(uid, sizeof(uid), "%u", (unsigned)spawn->uid);
        arguments[count++] = "--user";
        arguments[count++] = uid;
    }
    if (spawn->spare)
        arguments[count++] = "--spare";
    if (spawn->batch)
        arguments[count++] = "--batch";
    use_huge_pages();
    setenv("CUDA_MPS_PIPE_DIRECTORY", spawn->pipe_directory, 1);
    if (*spawn->visible_devices)
        show_devices(spawn->visible_devices);
    if (chdir("/"))
        fail(FUNNEL_ERROR_MPS_CONNECTION_FAILED, "/");
    execv(spawn->program, (char **)arguments);
    fail(FUNNEL_ERROR_MPS_CONNECTION_FAILED, spawn->program);
}

/* A child has the handlers of the daemon until restore_signals(). They write to the daemon's event
 * loop. So a server that was ordered to end that early would have ended the daemon. */
static pid_t fork_without_signals(void)
{
    sigset_t all, before;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid)
        sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int spawn_server(const struct spawn *spawn, pid_t *ret_pid, int *ret_fd)
{
    _cleanup_fd_ int own = -1;
    _cleanup_fd_ int theirs = -1;
    int ends[2];
    int error = sock_pair(ends);
    pid_t pid;

    if (error)
        return error;
    own = ends[0];
    theirs = ends[1];
    error = sock_ask_sender(own);
    if (error)
        return error;
    pid = fork_without_signals();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        run_child(spawn, theirs);
    *ret_pid = pid;
    *ret_fd = fd_steal(&own);
    return 0;
}
