/* SPDX-License-Identifier: Apache-2.0 */
/* The reader keeps no descriptor of the process that it was forked from, and looks at nothing
 * itself.
 */
#include "reader_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "reader_limits.h"
#include "reader_namespaces.h"
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
        if (nothing >= 0 && (fd != STDERR_FILENO || !READER_HAS_SANITIZER))
            dup2(nothing, fd);
    close_from(SOCKET + 1);
}

static void give(int fd, const struct image_facts *facts)
{
    void *message = NULL;
    size_t size = 0;

    if (!image_facts_pack(facts, &message, &size))
        write_all(fd, message, size);
    free(message);
}

/* All pages at once: a fault for each of them would take as long as the rest. */
static void populate(void *bytes, size_t size)
{
#ifdef MADV_POPULATE_READ
    madvise(bytes, size, MADV_POPULATE_READ);
#endif
}

/* The process for one image. */
static _Noreturn void look_into(const struct reader_request *request, int image, int answer,
                                image_look *look, unsigned cpu_seconds)
{
    struct image_facts facts;
    void *bytes;

    if (shm_map(image, request->size + 1, NULL, SHM_READ_ONLY, &bytes))
        _exit(1);
    populate(bytes, request->size);
    for (int fd = 0; fd <= SOCKET; fd++)
        if (fd != STDERR_FILENO || !READER_HAS_SANITIZER)
            close(fd);
    close(image);
    if (reader_limits_apply(cpu_seconds))
        _exit(1);
    look(bytes, request->size, request->sm, &facts);
    give(answer, &facts);
    _exit(0);
}

static void serve(const struct reader_request *request, int image, int answer, image_look *look,
                  unsigned cpu_seconds)
{
    struct image_facts facts;
    pid_t pid = fork();

    if (pid == 0)
        look_into(request, image, answer, look, cpu_seconds);
    if (pid > 0)
        return;
    image_facts_assume(&facts); /* out of processes or memory: not the image's fault */
    give(answer, &facts);
}

static void prepare(int socket)
{
    reader_namespaces_leave(); /* what follows holds where the kernel has none, too */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "funnel-reader");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    signal(SIGCHLD, SIG_IGN); /* no process is waited for */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    keep_only(socket);
}

_Noreturn void reader_process_run(int socket, image_look *look, unsigned cpu_seconds)
{
    struct reader_request request;
    int fds[READER_FDS];
    size_t count;

    prepare(socket);
    while (sock_recv(SOCKET, &request, sizeof(request), fds, READER_FDS, &count, -1) ==
               (ssize_t)sizeof(request) &&
           count == READER_FDS) {
        serve(&request, fds[0], fds[1], look, cpu_seconds);
        close(fds[0]);
        close(fds[1]);
    }
    _exit(0);
}
