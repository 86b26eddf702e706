/* SPDX-License-Identifier: Apache-2.0 */
/* Such a process opens nothing and connects to nothing, so empty namespaces cost it nothing. */
#include "process_namespaces.h"

#include <errno.h>
#include <sched.h>

#include "capabilities.h"

#define NAMESPACES (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS)

/* The user namespace comes first: nobody outside is root in it, and it needs no privilege. Where
 * users may not make one, root makes the others without it. */
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
