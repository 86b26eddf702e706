/* SPDX-License-Identifier: Apache-2.0 */
/* See default_limits.h. */
#include "default_limits.h"

#include <stdlib.h>
#include <string.h>

#include "grammar.h"
#include "journal.h"
#include "switch.h"
#include "text.h"

#define EVICT_AFTER_MAX (366u * 24 * 60 * 60) /* seconds, as in a command */

/* One "device=limit" of the list. */
static void apply_memory_item(struct limits *limits, char *item)
{
    char *value = strrchr(item, '=');
    uint64_t bytes = 0;
    char text[24];

    if (value)
        *value++ = '\0';
    if (!value || grammar_memory(value, &bytes)) {
        journal(
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: \"%s\" is not DEVICE=LIMIT such as 0=1G; ignored",
            item);
        return;
    }
    text_format(text, sizeof(text), "%lluM", (unsigned long long)(bytes >> 20));
    limits_set_memory(limits, item, bytes, text);
}

static void apply_memory_list(struct limits *limits, const char *list)
{
    char *copy = strdup(list);
    char *rest = NULL;

    for (char *item = copy ? strtok_r(copy, ",", &rest) : NULL; item;
         item = strtok_r(NULL, ",", &rest))
        apply_memory_item(limits, item);
    free(copy);
}

static void apply_evict_after(struct limits *limits, const char *seconds)
{
    uint64_t number = 0;

    if (!seconds || !*seconds || !strcmp(seconds, "none"))
        return;
    if (text_to_u64(seconds, &number) || !number || number > EVICT_AFTER_MAX)
        journal("FUNNEL_EVICT_AFTER: \"%s\" is not a number of seconds above 0; ignored", seconds);
    else
        limits->evict_after = (uint32_t)number;
}

void limits_init_from_environment(struct limits *limits)
{
    const char *percent = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    const char *memory = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    const char *priority = getenv("CUDA_MPS_CLIENT_PRIORITY");

    memset(limits, 0, sizeof(*limits));
    limits->sm_centipercent = 10000;
    limits->totals_show_limit = switch_is_on("FUNNEL_SHOW_LIMIT");
    limits->lend = switch_is_on("FUNNEL_LEND");
    limits->oversubscribe = switch_is_on("FUNNEL_OVERSUBSCRIBE");
    apply_evict_after(limits, getenv("FUNNEL_EVICT_AFTER"));
    if (percent && *percent && grammar_percent(percent, &limits->sm_centipercent))
        journal("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: \"%s\" is not a percentage above 0; ignored",
                percent);
    if (memory)
        apply_memory_list(limits, memory);
    if (priority && !strcmp(priority, "1"))
        limits->priority = 1;
    else if (priority && *priority && strcmp(priority, "0"))
        journal("CUDA_MPS_CLIENT_PRIORITY: \"%s\" is neither 0 nor 1; ignored", priority);
}

void quotas_change_from_environment(struct quotas *quotas)
{
    const char *changes = getenv("FUNNEL_QUOTAS");
    char reason[QUOTA_REASON_MAX];

    if (changes && quotas_change(quotas, changes, reason))
        journal("FUNNEL_QUOTAS is ignored: %s", reason);
}
