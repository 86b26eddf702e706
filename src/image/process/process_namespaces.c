/* SPDX-License-Identifier: Apache-2.0 */
/* Such a process opens nothing and connects to nothing, so empty namespaces cost it nothing. */
#include "process_namespaces.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACES (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS)

/* The user namespace comes first: nobody outside is root in it, and it needs no privilege. Where
 * users may not make one, root makes the others without it. */
static int leave_all(void)
{
    return !unshare(CLONE_NEWUSER | NAMESPACES) || !unshare(NAMESPACES) ? 0 : -errno;
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    for (unsigned long capability = 0; capability <= 63; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    syscall(SYS_capset, &header, none);
}

int process_namespaces_leave(void)
{
    int error = leave_all();

    drop_capabilities();
    return error;
}
