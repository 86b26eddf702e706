/* SPDX-License-Identifier: Apache-2.0 */
/* See engine_config.h. */
#include "engine_config.h"

#include <sched.h>

#include "engine_state.h"

static unsigned cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}

static unsigned or_else(unsigned value, unsigned otherwise)
{
    return value ? value : otherwise;
}

struct sg_engine_config config_complete(const struct sg_engine_config *given)
{
    struct sg_engine_config config = *given;
    config.sm_count = or_else(config.sm_count, 8);
    config.sm_count = config.sm_count > SG_MAX_SMS ? SG_MAX_SMS : config.sm_count;
    config.host_threads = or_else(config.host_threads, cpu_count());
    config.threads_per_sm = or_else(config.threads_per_sm, 2048);
    config.blocks_per_sm = or_else(config.blocks_per_sm, MAX_RESIDENT);
    config.shared_per_sm = or_else(config.shared_per_sm, 228 << 10);
    config.registers_per_sm = or_else(config.registers_per_sm, 65536);
    return config;
}

const struct sg_engine_config *engine_config(const struct sg_engine *engine)
{
    return &engine->config;
}
