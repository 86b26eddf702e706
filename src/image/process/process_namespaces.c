/* SPDX-License-Identifier: Apache-2.0 */
/* The process opens no files and makes no connections, so it needs nothing from its namespaces. */
#include "process_namespaces.h"

#include <errno.h>
#include <sched.h>

#include "capabilities.h"

#define NAMESPACES (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS)

/* The user namespace comes first, because it needs no privilege and gives none outside. Where users
 * may not create one, root creates the others without it. */
static int leave_all(void)
{
    return !unshare(CLONE_NEWUSER | NAMESPACES) || !unshare(NAMESPACES) ? 0 : -errno;
}

int process_namespaces_leave(void)
{
    int error = leave_all();

    capabilities_drop();
    return error;
}
