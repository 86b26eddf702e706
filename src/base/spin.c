/* SPDX-License-Identifier: Apache-2.0 */
/* How long to spin. The number of CPUs is the one of this process, which a container may limit. */
#include "spin.h"

#include <sched.h>

#include "clock.h"
#include "cpus.h"
#include "switch.h"

#define MANY_CPUS 4
#define LONG_SPIN_NS (50 * NS_PER_US)
#define SHORT_SPIN_NS (2 * NS_PER_US)
#define ROUNDS_PER_LOOK 8    /* at the clock */
#define CROWDED_NS NS_PER_MS /* between two looks: the core was somebody else's */

static uint64_t work_out_budget(void)
{
    if (switch_is_on("FUNNEL_NO_SPIN"))
        return 0;
    return cpus_available() > MANY_CPUS ? LONG_SPIN_NS : SHORT_SPIN_NS;
}

uint64_t spin_budget_ns(void)
{
    static uint64_t cached = UINT64_MAX; /* several threads work out the same number */
    uint64_t budget = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (budget == UINT64_MAX) {
        budget = work_out_budget();
        __atomic_store_n(&cached, budget, __ATOMIC_RELAXED);
    }
    return budget;
}

static bool brief; /* atomic */

void spin_be_brief(bool be_brief)
{
    if (__atomic_load_n(&brief, __ATOMIC_RELAXED) != be_brief)
        __atomic_store_n(&brief, be_brief, __ATOMIC_RELAXED);
}

static uint64_t budget_now(void)
{
    uint64_t budget = spin_budget_ns();
    bool too_long = budget > SHORT_SPIN_NS && __atomic_load_n(&brief, __ATOMIC_RELAXED);

    return too_long ? SHORT_SPIN_NS : budget;
}

struct spin spin_begin(void)
{
    return (struct spin){.budget = budget_now()};
}

bool spin_is_cheap(void)
{
    return budget_now() == LONG_SPIN_NS;
}

struct spin spin_begin_patient(uint64_t patience_ns)
{
    return (struct spin){.budget = budget_now(), .patience = spin_is_cheap() ? patience_ns : 0};
}

bool spin_more(struct spin *spin)
{
    if (spin->budget == 0)
        return false;
    cpu_relax();
    if (++spin->rounds % ROUNDS_PER_LOOK != 0)
        return true;
    uint64_t now = clock_ns(), away = spin->looked ? now - spin->looked : 0;
    spin->looked = now;
    if (spin->deadline == 0)
        spin->deadline = now + spin->budget;
    if (now < spin->deadline)
        return true;
    if (now >= spin->deadline + spin->patience || away > CROWDED_NS)
        return false;
    sched_yield();
    return true;
}
