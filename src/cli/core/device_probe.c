/* SPDX-License-Identifier: Apache-2.0 */
/* See device_probe.h. */
#include "device_probe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void probe_driver(void)
{
    const char *name = getenv("FUNNEL_DRIVER");
    void *library = dlopen(name && *name ? name : "libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;

    _exit(init && init(0) == 0 ? 0 : 1);
}

bool device_probe_cuda(void)
{
    int status = 1;
    pid_t pid;

    if (access("/dev/nvidiactl", F_OK) && !getenv("FUNNEL_DRIVER"))
        return false;
    pid = fork();
    if (pid == 0)
        probe_driver();
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}
