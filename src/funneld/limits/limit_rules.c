/* SPDX-License-Identifier: Apache-2.0 */
/* See limit_rules.h. */
#include "limit_rules.h"

#include <errno.h>
#include <string.h>

#include "client_class.h"
#include "text.h"

static struct limit_rule *find_rule(struct limit_rules *rules, const char *group, uid_t uid)
{
    for (unsigned i = 0; i < rules->count; i++) {
        struct limit_rule *rule = &rules->rule[i];

        if (!strcmp(rule->group, group) && (*group || rule->uid == uid))
            return rule;
    }
    return NULL;
}

static struct limit_rule *add_rule(struct limit_rules *rules, const char *group, uid_t uid)
{
    struct limit_rule *rule;

    if (rules->count == LIMIT_RULES_MAX)
        return NULL;
    rule = &rules->rule[rules->count++];
    *rule = (struct limit_rule){.uid = uid};
    text_copy(rule->group, sizeof(rule->group), group);
    return rule;
}

static void merge(struct limit_change *known, const struct limit_change *change)
{
    if (change->sm_centipercent || change->sms || change->lifts_share) {
        known->lifts_share = change->lifts_share;
        known->sm_centipercent = change->sm_centipercent;
        known->sms = change->sms;
    }
    if (change->sets_priority) {
        known->sets_priority = true;
        known->priority = change->priority;
    }
    if (change->class)
        known->class = change->class;
    if (change->sets_oversubscribe) {
        known->sets_oversubscribe = true;
        known->oversubscribe = change->oversubscribe;
    }
    if (change->sets_evict_after) {
        known->sets_evict_after = true;
        known->evict_after = change->evict_after;
    }
    if (change->sets_memory) {
        known->sets_memory = true;
        known->memory = change->memory;
        text_copy(known->device, sizeof(known->device), change->device);
    }
    if (change->sets_joint) {
        known->sets_joint = true;
        known->joint = change->joint;
        text_copy(known->joint_device, sizeof(known->joint_device), change->joint_device);
    }
}

int limit_rules_set(struct limit_rules *rules, const char *group, uid_t uid,
                    const struct limit_change *change)
{
    struct limit_rule *rule = find_rule(rules, group, uid);

    if (!rule)
        rule = add_rule(rules, group, uid);
    if (!rule)
        return -ENOSPC;
    merge(&rule->change, change);
    return 0;
}

/* The limits of a client under both: each is the stricter one. */
static void take_stricter(struct server_limits *limits, const struct server_limits *other)
{
    if (other->sm_centipercent < limits->sm_centipercent)
        limits->sm_centipercent = other->sm_centipercent;
    if (other->priority > limits->priority)
        limits->priority = other->priority;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        if (other->memory_limit[i] &&
            (!limits->memory_limit[i] || other->memory_limit[i] < limits->memory_limit[i]))
            limits->memory_limit[i] = other->memory_limit[i];
}

bool limit_rules_have_group(const struct limit_rules *rules, const char *group)
{
    return find_rule((struct limit_rules *)rules, group, 0) != NULL;
}

void limit_rules_apply(const struct limit_rules *rules, const struct server_identity *identity,
                       const struct server_ready *ready, struct server_limits *limits)
{
    const struct limit_rule *user = find_rule((struct limit_rules *)rules, "", identity->uid);
    const struct limit_rule *group =
        *identity->group ? find_rule((struct limit_rules *)rules, identity->group, 0) : NULL;

    if (user) {
        limit_change_apply(&user->change, ready, limits);
        limit_change_apply_joint(&user->change, JOINT_USER, identity, ready, limits);
    }
    if (!group)
        return;
    limit_change_apply_joint(&group->change, JOINT_GROUP, identity, ready, limits);
    struct server_limits of_group = *limits;
    limit_change_apply(&group->change, ready, &of_group);
    take_stricter(limits, &of_group);
    limits->oversubscribe = of_group.oversubscribe;
    limits->evict_after = of_group.evict_after;
}

void limit_rules_bound(const struct limit_rules *rules, uid_t uid, const struct server_ready *ready,
                       const struct server_limits *limits_of_server, struct server_limits *limits)
{
    const struct limit_rule *user = find_rule((struct limit_rules *)rules, "", uid);
    struct server_limits bound = *limits_of_server;

    if (user)
        limit_change_apply(&user->change, ready, &bound);
    take_stricter(limits, &bound);
}

static uint32_t class_of_rule(const struct limit_rule *rule)
{
    return rule ? rule->change.class : CLASS_UNSET;
}

uint32_t limit_rules_class(const struct limit_rules *rules, const struct server_identity *identity,
                           uint32_t of_space, uint32_t asked)
{
    struct limit_rules *all = (struct limit_rules *)rules;
    uint32_t of_user = class_of_rule(find_rule(all, "", identity->uid));
    uint32_t of_group =
        *identity->group ? class_of_rule(find_rule(all, identity->group, 0)) : CLASS_UNSET;
    uint32_t set = of_space > of_user ? of_space : of_user;

    return client_class_bound(asked, of_group > set ? of_group : set);
}
