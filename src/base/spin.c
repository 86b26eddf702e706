/* SPDX-License-Identifier: Apache-2.0 */
/* How long to spin. The number of CPUs is the one of this process, which a container may limit. */
#include "spin.h"

#include <sched.h>
#include <stdatomic.h>

#include "clock.h"
#include "cpus.h"
#include "feature.h"

#define LONG_SPIN_NS (50 * NS_PER_US)
#define SHORT_SPIN_NS (2 * NS_PER_US)
#define ROUNDS_PER_CHECK 8    /* of the clock */
#define OVERLOAD_NS NS_PER_MS /* between two checks: another thread had the core */

static uint64_t work_out_budget(void)
{
    if (feature_is_off(FEATURE_SPIN))
        return 0;
    return cpus_available() > 1 ? LONG_SPIN_NS : SHORT_SPIN_NS;
}

/* Several threads may work out the same number, which stands for itself: relaxed. */
uint64_t spin_budget_ns(void)
{
    static _Atomic uint64_t cached = UINT64_MAX;
    uint64_t budget = atomic_load_explicit(&cached, memory_order_relaxed);

    if (budget == UINT64_MAX) {
        budget = work_out_budget();
        atomic_store_explicit(&cached, budget, memory_order_relaxed);
    }
    return budget;
}

static _Atomic uint32_t most_ns; /* 0 = no bound */

/* A hint that orders nothing: relaxed, as in budget_now(). */
void spin_limit(uint32_t ns)
{
    if (atomic_load_explicit(&most_ns, memory_order_relaxed) != ns)
        atomic_store_explicit(&most_ns, ns, memory_order_relaxed);
}

/* Partner spin_limit(). */
static uint64_t budget_now(void)
{
    uint64_t budget = spin_budget_ns();
    uint32_t most = atomic_load_explicit(&most_ns, memory_order_relaxed);

    return most && most < budget ? most : budget;
}

struct spin spin_begin(void)
{
    return (struct spin){.budget = budget_now()};
}

bool spin_has_several_cpus(void)
{
    return spin_budget_ns() == LONG_SPIN_NS;
}

bool spin_is_cheap(void)
{
    return budget_now() == LONG_SPIN_NS;
}

struct spin spin_begin_yielding(uint64_t yielding_ns)
{
    return (struct spin){.budget = budget_now(), .yielding = spin_is_cheap() ? yielding_ns : 0};
}

/* Relaxed: hints. The word is stored only when it changes, so that its line stays shared. */
static void make_way(struct spin_cpus cpus)
{
    uint32_t here = (uint32_t)sched_getcpu() + 1;

    if (atomic_load_explicit(cpus.mine, memory_order_relaxed) != here)
        atomic_store_explicit(cpus.mine, here, memory_order_relaxed);
    if (atomic_load_explicit(cpus.partners, memory_order_relaxed) == here)
        sched_yield();
}

bool spin_more(struct spin *spin)
{
    if (spin->budget == 0)
        return false;
    cpu_relax();
    if (++spin->rounds % ROUNDS_PER_CHECK != 0)
        return true;
    if (spin->cpus.mine)
        make_way(spin->cpus);
    uint64_t now = clock_ns(), away = spin->last_check ? now - spin->last_check : 0;
    spin->last_check = now;
    if (spin->deadline == 0)
        spin->deadline = now + spin->budget;
    if (now < spin->deadline)
        return true;
    if (now >= spin->deadline + spin->yielding || away > OVERLOAD_NS)
        return false;
    sched_yield();
    return true;
}
