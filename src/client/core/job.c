/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "job.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "hello.h"
#include "text.h"

/* How many processes the job has: of Open MPI, MPICH and its kin, MVAPICH, Slurm, torchrun. */
static const char *const counts[] = {
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",         "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS", "LOCAL_WORLD_SIZE", "WORLD_SIZE"};

static bool launcher_says_so(void)
{
    uint64_t count;

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        const char *value = getenv(counts[i]);
        if (value && !text_to_u64(value, &count) && count > 1)
            return true;
    }
    return false;
}

static bool has_argument(const char *command, size_t size, const char *argument)
{
    for (size_t at = 0; at < size; at += strnlen(command + at, size - at) + 1)
        if (!strncmp(command + at, argument, size - at))
            return true;
    return false;
}

/* A parent in another PID namespace has the number 0 here. */
static bool is_fork(const char *command, size_t size)
{
    char path[64], parents[HELLO_COMMAND_MAX] = "";
    _cleanup_fd_ int fd = -1;

    text_format(path, sizeof(path), "/proc/%d/cmdline", (int)getppid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || size > sizeof(parents) || read(fd, parents, size) <= 0)
        return false;
    return !memcmp(command, parents, size);
}

bool job_has_several_processes(const char *command, size_t size)
{
    return launcher_says_so() || has_argument(command, size, "--multiprocessing-fork") ||
           is_fork(command, size);
}
