/* SPDX-License-Identifier: Apache-2.0 */
/* See rules.h. */
#include "rules.h"

#include <errno.h>
#include <string.h>

#include "text.h"

static struct rule *find(struct rules *rules, const char *group, uid_t uid)
{
    for (unsigned i = 0; i < rules->count; i++) {
        struct rule *rule = &rules->rule[i];

        if (!strcmp(rule->group, group) && (*group || rule->uid == uid))
            return rule;
    }
    return NULL;
}

static struct rule *add(struct rules *rules, const char *group, uid_t uid)
{
    struct rule *rule;

    if (rules->count == RULES_MAX)
        return NULL;
    rule = &rules->rule[rules->count++];
    *rule = (struct rule){.uid = uid};
    text_copy(rule->group, sizeof(rule->group), group);
    return rule;
}

static void merge(struct limit_order *known, const struct limit_order *order)
{
    if (order->sm_centipercent || order->sms) {
        known->sm_centipercent = order->sm_centipercent;
        known->sms = order->sms;
    }
    if (order->sets_priority) {
        known->sets_priority = true;
        known->priority = order->priority;
    }
    if (order->sets_memory) {
        known->sets_memory = true;
        known->memory = order->memory;
        text_copy(known->device, sizeof(known->device), order->device);
    }
}

int rules_set(struct rules *rules, const char *group, uid_t uid, const struct limit_order *order)
{
    struct rule *rule = find(rules, group, uid);

    if (!rule)
        rule = add(rules, group, uid);
    if (!rule)
        return -ENOSPC;
    merge(&rule->order, order);
    return 0;
}

void rules_apply(const struct rules *rules, const struct server_identity *identity,
                 const struct server_ready *ready, struct server_limits *limits)
{
    const struct rule *user = find((struct rules *)rules, "", identity->uid);
    const struct rule *group =
        *identity->group ? find((struct rules *)rules, identity->group, 0) : NULL;

    if (user)
        limit_order_apply(&user->order, ready, limits);
    if (group)
        limit_order_apply(&group->order, ready, limits);
}
