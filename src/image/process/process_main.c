/* SPDX-License-Identifier: Apache-2.0 */
/* The forking process keeps no descriptor of the server, and reads no image itself. */
#include "process_main.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "process_limits.h"
#include "process_namespaces.h"
#include "shm.h"
#include "sock.h"

#define SOCKET 3

/* Where close_range() is missing (Linux before 5.9), as many are closed as a process has by
 * default. */
static void close_from(int first)
{
#ifdef SYS_close_range
    if (!syscall(SYS_close_range, first, ~0u, 0))
        return;
#endif
    for (int fd = first; fd < 1024; fd++)
        close(fd);
}

/* A sanitizer reports to the standard error. */
static void keep_only(int socket)
{
    if (socket != SOCKET && dup2(socket, SOCKET) < 0)
        _exit(1);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < SOCKET; fd++)
        if (nothing >= 0 && (fd != STDERR_FILENO || !PROCESS_HAS_SANITIZER))
            dup2(nothing, fd);
    close_from(SOCKET + 1);
}

/* Populates all pages at once: page faults one by one would take as long as the job. */
static void populate_pages(void *bytes, size_t size)
{
#ifdef MADV_POPULATE_READ
    madvise(bytes, size, MADV_POPULATE_READ);
#endif
}

/* The process for one image. */
static _Noreturn void work_on(const struct process_request *request, int image, int answer,
                              const struct image_process_kind *kind)
{
    void *bytes;

    if (shm_map(image, request->size + 1, NULL, SHM_READ_ONLY, &bytes))
        _exit(1);
    populate_pages(bytes, request->size);
    for (int fd = 0; fd <= SOCKET; fd++)
        if (fd != STDERR_FILENO || !PROCESS_HAS_SANITIZER)
            close(fd);
    close(image);
    if (process_limits_apply(kind->cpu_seconds, kind->memory_max))
        _exit(1);
    kind->job(kind->context, bytes, request->size, &request->task, answer);
    _exit(0);
}

static void serve_request(const struct process_request *request, int image, int answer,
                          const struct image_process_kind *kind)
{
    pid_t pid = fork();

    if (pid == 0)
        work_on(request, image, answer, kind);
    if (pid < 0 && kind->excuse)
        kind->excuse(answer);
}

static void become_harmless(const char *name)
{
    process_namespaces_leave(); /* the rest applies without namespaces, too */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    signal(SIGCHLD, SIG_IGN); /* no process is waited for */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
}

static void prepare_process(const struct image_process_kind *kind)
{
    struct process_greeting greeting = {.why = ""};

    if (!kind->prepare)
        return;
    int error = kind->prepare(kind->context, greeting.why, sizeof(greeting.why));
    sock_send(SOCKET, &greeting, sizeof(greeting), NULL, 0);
    if (error)
        _exit(1);
}

_Noreturn void process_main(int socket, const struct image_process_kind *kind)
{
    struct process_request request;
    int fds[PROCESS_FDS];
    size_t count;

    become_harmless(kind->name);
    keep_only(socket);
    prepare_process(kind);
    while (sock_recv(SOCKET, &request, sizeof(request), fds, PROCESS_FDS, &count, -1) ==
               (ssize_t)sizeof(request) &&
           count == PROCESS_FDS) {
        serve_request(&request, fds[0], fds[1], kind);
        close(fds[0]);
        close(fds[1]);
    }
    _exit(0);
}
