/* SPDX-License-Identifier: Apache-2.0 */
/* See descriptor_limit.h. */
#include "descriptor_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "fd.h"

uint64_t descriptor_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

uint64_t descriptor_limit_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 0;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return descriptor_limit();
}

/* A place in the file system needs no right to it, and none to read it. */
bool descriptors_are_short(unsigned count)
{
    int fds[DESCRIPTORS_TRIED];
    unsigned opened = 0;

    if (count > DESCRIPTORS_TRIED)
        count = DESCRIPTORS_TRIED;
    while (opened < count && (fds[opened] = open("/", O_PATH | O_CLOEXEC)) >= 0)
        opened++;
    bool is_short = opened < count && (errno == EMFILE || errno == ENFILE);
    while (opened)
        fd_close(&fds[--opened]);
    return is_short;
}
