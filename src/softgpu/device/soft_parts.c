/* SPDX-License-Identifier: Apache-2.0 */
/* The subsystems that have something in contexts, in the order in which a context is emptied. */
#include "array_calls.h"
#include "pool_calls.h"
#include "soft_array.h"
#include "soft_event.h"
#include "soft_memory.h"
#include "soft_module.h"
#include "soft_part.h"
#include "soft_pool.h"
#include "soft_texture.h"

static const struct soft_part modules = {.context_ends_locked = modules_drop_context_locked};
static const struct soft_part events = {.context_ends_locked = events_drop_context_locked};
static const struct soft_part textures = {.context_ends_locked = textures_drop_context_locked};
static const struct soft_part arrays = {.context_ends_locked = arrays_drop_context_locked};
static const struct soft_part memory = {
    .context_begins_locked = memory_show_shared_locked,
    .context_ends_locked = memory_drop_context_locked,
    .synchronized_locked = pools_synchronized_locked,
    .release_locked = pools_release_locked,
};

const struct soft_part *const soft_parts[] = {
    &modules, &events, &textures, &arrays, &memory, NULL,
};
