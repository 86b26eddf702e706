/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_group.h. */
#include "peer_group.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control_group.h"
#include "control_group_name.h"
#include "fd.h"
#include "feature.h"
#include "process_stat.h"
#include "sock.h"
#include "text.h"

static void name_group(pid_t pid, char ret_name[HELLO_GROUP_MAX])
{
    char *groups = NULL;

    *ret_name = '\0';
    if (control_groups_read("/proc", pid, &groups))
        return;
    control_groups_name(groups, ret_name);
    free(groups);
}

/* What the daemon itself runs in says nothing about a program. */
static const char *own_group(void)
{
    static char name[HELLO_GROUP_MAX];
    static bool known;

    if (!known)
        name_group(getpid(), name);
    known = true;
    return name;
}

/* The groups are those of this process only if it had not ended when they had been read. */
static bool find_group(int fd, pid_t pid, char ret_name[HELLO_GROUP_MAX])
{
    _cleanup_fd_ int process = -1;

    if (pid <= 0 || sock_peer_process(fd, &process))
        return false;
    name_group(pid, ret_name);
    return *ret_name && !process_has_ended(process) && strcmp(ret_name, own_group());
}

void peer_group_find(const struct limit_rules *rules, int fd, struct server_identity *identity)
{
    char name[HELLO_GROUP_MAX];

    if (feature_is_off_once(FEATURE_CONTROL_GROUPS) || !find_group(fd, identity->pid, name))
        return;
    if (!*identity->group || limit_rules_have_group(rules, name))
        text_copy(identity->group, sizeof(identity->group), name);
}
