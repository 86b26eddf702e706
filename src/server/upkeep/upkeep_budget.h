/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long clients that work may be suspended for upkeep: a tenth of the time. Each suspension
 * takes from the budget, which grows as time passes. Here is only the arithmetic, with times by
 * clock_ns().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct upkeep_budget {
    int64_t left_ns;  /* below 0: the last suspension took longer than was left */
    uint64_t seen_at; /* the last upkeep_budget_allows() */
};

/* Whether clients may be suspended now. Where none works, that costs no client time. */
bool upkeep_budget_allows(struct upkeep_budget *budget, uint64_t now, bool clients_work);

/* Clients were suspended for so long. */
void upkeep_budget_spend(struct upkeep_budget *budget, uint64_t took_ns);
