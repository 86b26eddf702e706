/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, the kernel's access control that a process puts upon itself (landlock(7), Linux 5.13
 * and later). A process in a domain opens the named paths alone. It may neither trace a process
 * outside of its domain nor reach it through /proc/PID/mem.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rights to a path and to everything beneath it. */
enum landlock_rights {
    LANDLOCK_READ,   /* read files, list directories, execute */
    LANDLOCK_WRITE,  /* and write existing files, ioctl() devices */
    LANDLOCK_CHANGE, /* and make, rename and delete files and directories */
};

struct landlock_ruleset {
    int fd;           /* the caller closes it */
    uint64_t handled; /* the rights that the kernel knows */
};

/* A ruleset that grants nothing: 0 or -errno; -ENOSYS and -EOPNOTSUPP: the kernel has no
 * Landlock. Where the kernel can, the domain also refuses signals to processes outside, and
 * abstract Unix sockets of theirs. */
int landlock_begin(struct landlock_ruleset *ruleset);

/* Grants rights to a path. A path that does not exist, or that the caller may not reach, is
 * skipped. 0 or -errno. */
int landlock_allow(const struct landlock_ruleset *ruleset, const char *path,
                   enum landlock_rights rights);

/* The calling thread, and each that it starts from now on, enters the domain for good. Needs
 * no_new_privs. 0 or -errno. */
int landlock_enter(const struct landlock_ruleset *ruleset);
