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

struct group_names {
    char group[HELLO_GROUP_MAX], container[HELLO_GROUP_MAX];
};

/* Frees `groups`. */
static struct group_names names_of(char *groups)
{
    struct group_names names;

    control_groups_name(groups, names.group);
    control_groups_container(groups, names.container);
    free(groups);
    return names;
}

/* The daemon's own control group says nothing about a program. */
static const struct group_names *own_names(void)
{
    static struct group_names names;
    static bool known;

    char *groups = NULL;

    if (!known && !control_groups_read("/proc", getpid(), &groups))
        names = names_of(groups);
    known = true;
    return &names;
}

static void forget_own_name(char *name, const char *own)
{
    if (!strcmp(name, own))
        *name = '\0';
}

static bool find_names(int fd, pid_t pid, struct group_names *ret_names)
{
    char *groups = NULL;

    if (pid <= 0 || peer_program_groups(fd, pid, &groups))
        return false;
    *ret_names = names_of(groups);
    forget_own_name(ret_names->group, own_names()->group);
    forget_own_name(ret_names->container, own_names()->container);
    return true;
}

void peer_group_find(const struct limit_rules *rules, int fd, struct server_identity *identity)
{
    struct group_names names;

    if (feature_is_off_once(FEATURE_CONTROL_GROUPS) || !find_names(fd, identity->pid, &names))
        return;
    text_copy(identity->container, sizeof(identity->container), names.container);
    if (*names.group && (!*identity->group || limit_rules_have_group(rules, names.group)))
        text_copy(identity->group, sizeof(identity->group), names.group);
}
