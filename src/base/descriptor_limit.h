/* SPDX-License-Identifier: Apache-2.0 */
/* How many descriptors this process may have: RLIMIT_NOFILE, "open files" in `ulimit -a`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* For messages about the limit of the daemon, from which servers have theirs. */
#define DESCRIPTORS_REMEDY \
    "raise it before the daemon starts (ulimit -Hn, LimitNOFILE= of its unit)"

/* The limit that holds now; 0 where the kernel does not tell it. */
uint64_t descriptor_limit(void);

/* Raises the limit as far as the process may, for itself and its children, and returns it. */
uint64_t descriptor_limit_raise(void);

/* Whether fewer than `count` descriptors are left. It opens so many for a moment, so it is meant
 * for what has failed. At most DESCRIPTORS_TRIED are tried. */
#define DESCRIPTORS_TRIED 16u
bool descriptors_are_short(unsigned count);
