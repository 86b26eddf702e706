/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities that this file does not know of yet are dropped as well: there are 64 at most. */
#include "capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void capabilities_drop(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    for (unsigned long capability = 0; capability <= 63; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    syscall(SYS_capset, &header, none);
}
