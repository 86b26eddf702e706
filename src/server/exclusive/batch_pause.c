/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that make graphs with conditional nodes mostly make the next one soon. */
#include "batch_pause.h"

#include <stdlib.h>

#include "cleanup.h"
#include "clock.h"

#define LINGER_NS (1 * NS_PER_SEC)

struct batch_pause *batch_pause_create(void)
{
    struct batch_pause *pause = calloc(1, sizeof(*pause));

    if (pause)
        pthread_mutex_init(&pause->lock, NULL);
    return pause;
}

void batch_pause_destroy(struct batch_pause *pause)
{
    free(pause);
}

bool batch_pause_begin(const struct device *device)
{
    struct batch_pause *pause = device->batch_pause;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pause->lock);
    bool was_on = batch_pause_is_on(device);

    pause->graphs++;
    atomic_store(&pause->until, UINT64_MAX);
    return was_on;
}

void batch_pause_end(const struct device *device)
{
    struct batch_pause *pause = device->batch_pause;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pause->lock);

    if (--pause->graphs == 0)
        atomic_store(&pause->until, clock_ns() + LINGER_NS);
}

bool batch_pause_lasts(struct batch_pause *pause)
{
    uint64_t until = atomic_load_explicit(&pause->until, memory_order_relaxed);

    if (!until)
        return false;
    if (clock_ns() < until)
        return true;
    return !atomic_compare_exchange_strong(&pause->until, &until, 0) && until;
}
