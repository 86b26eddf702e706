/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that make graphs with conditional nodes mostly make the next one soon. */
#include "batch_pause.h"

#include "cleanup.h"
#include "clock.h"
#include "launch_state.h"

#define LINGER_NS (1 * NS_PER_SEC)

void batch_pause_init(struct batch_pause *pause)
{
    pthread_mutex_init(&pause->lock, NULL);
}

bool batch_pause_begin(const struct device *device)
{
    struct batch_pause *pause = &device->launch->batch_pause;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pause->lock);
    bool was_on = batch_pause_is_on(device);

    pause->graphs++;
    atomic_store(&pause->until, UINT64_MAX);
    return was_on;
}

void batch_pause_end(const struct device *device)
{
    struct batch_pause *pause = &device->launch->batch_pause;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pause->lock);

    if (--pause->graphs == 0)
        atomic_store(&pause->until, clock_ns() + LINGER_NS);
}

/* Relaxed: whoever begins a pause waits for those that look at the same time. */
bool batch_pause_is_on(const struct device *device)
{
    struct batch_pause *pause = &device->launch->batch_pause;
    uint64_t until = atomic_load_explicit(&pause->until, memory_order_relaxed);

    if (!until)
        return false;
    if (clock_ns() < until)
        return true;
    return !atomic_compare_exchange_strong(&pause->until, &until, 0) && until;
}
