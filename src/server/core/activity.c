/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is ordered by these words: a reader may be late. */
#include "activity.h"

#include <stddef.h>

static __thread struct activity *own;

/* Partner: activity_name(). */
static void set(_Atomic(const char *) *word, const char *text)
{
    atomic_store_explicit(word, text, memory_order_relaxed);
}

void activity_own(struct activity *activity)
{
    own = activity;
}

void activity_set_call(const char *call)
{
    if (own)
        set(&own->call, call);
}

void activity_set_stage(struct activity *activity, const char *stage)
{
    set(&activity->stage, stage);
}

/* Partner: set(). */
const char *activity_name(const struct activity *activity)
{
    const char *call = atomic_load_explicit(&activity->call, memory_order_relaxed);

    return call ? call : atomic_load_explicit(&activity->stage, memory_order_relaxed);
}
