/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of contexts that a tool has heard of. The caller has a lock of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CONTEXT_IDS_MAX 64u

struct context_ids {
    uint32_t each[CONTEXT_IDS_MAX];
    unsigned count;
};

bool context_ids_have(const struct context_ids *ids, uint32_t id);

/* False when there are CONTEXT_IDS_MAX. */
bool context_ids_add(struct context_ids *ids, uint32_t id);

/* Removes the id, if it is there. */
void context_ids_remove(struct context_ids *ids, uint32_t id);
