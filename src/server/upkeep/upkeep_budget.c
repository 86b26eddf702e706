/* SPDX-License-Identifier: Apache-2.0 */
/* See upkeep_budget.h. */
#include "upkeep_budget.h"

#include "clock.h"

/* Clients may be suspended for one part in so many of the time. */
#define SUSPENDED_PART 10u

/* What the budget holds at most: as much as grows between two looks of upkeep.c. */
#define BUDGET_NS ((int64_t)(10 * NS_PER_MS))

/* Times beyond the limit are cut before they are added, since the first look has no look before. */
static void grow(struct upkeep_budget *budget, uint64_t passed_ns)
{
    uint64_t lacking = (uint64_t)(BUDGET_NS - budget->left_ns), more = passed_ns / SUSPENDED_PART;

    budget->left_ns += (int64_t)(more < lacking ? more : lacking);
}

bool upkeep_budget_allows(struct upkeep_budget *budget, uint64_t now, bool clients_work)
{
    if (clients_work)
        grow(budget, now - budget->seen_at);
    else
        budget->left_ns = BUDGET_NS;
    budget->seen_at = now;
    return budget->left_ns > 0;
}

void upkeep_budget_spend(struct upkeep_budget *budget, uint64_t took_ns)
{
    budget->left_ns -= (int64_t)took_ns;
}
