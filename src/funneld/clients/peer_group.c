/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_group.h. */
#include "peer_group.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control_group.h"
#include "control_group_name.h"
#include "feature.h"
#include "peer_program.h"
#include "text.h"

/* Frees `groups`. */
static void name_group(char *groups, char ret_name[HELLO_GROUP_MAX])
{
    control_groups_name(groups, ret_name);
    free(groups);
}

/* The daemon's own control group says nothing about a program. */
static const char *own_group(void)
{
    static char name[HELLO_GROUP_MAX];
    static bool known;

    char *groups = NULL;

    if (!known && !control_groups_read("/proc", getpid(), &groups))
        name_group(groups, name);
    known = true;
    return name;
}

static bool find_group(int fd, pid_t pid, char ret_name[HELLO_GROUP_MAX])
{
    char *groups = NULL;

    if (pid <= 0 || peer_program_groups(fd, pid, &groups))
        return false;
    name_group(groups, ret_name);
    return *ret_name && strcmp(ret_name, own_group());
}

void peer_group_find(const struct limit_rules *rules, int fd, struct server_identity *identity)
{
    char name[HELLO_GROUP_MAX];

    if (feature_is_off_once(FEATURE_CONTROL_GROUPS) || !find_group(fd, identity->pid, name))
        return;
    if (!*identity->group || limit_rules_have_group(rules, name))
        text_copy(identity->group, sizeof(identity->group), name);
}
