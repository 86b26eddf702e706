/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's default limits come from its environment; values that cannot be read are left out.
 */
#include "default_limits.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static int clear(void **state)
{
    unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    unsetenv("CUDA_MPS_CLIENT_PRIORITY");
    unsetenv("FUNNEL_SHOW_LIMIT");
    unsetenv("FUNNEL_LEND");
    unsetenv("FUNNEL_OVERSUBSCRIBE");
    return 0;
}

static void test_environment(void **state)
{
    struct limits limits;

    limits_init_from_environment(&limits);
    assert_int_equal(limits.sm_centipercent, 10000);
    assert_int_equal(limits.device_count, 0);
    assert_false(limits.totals_show_limit);
    assert_false(limits.lend);
    assert_false(limits.oversubscribe);
    assert_int_equal(limits.evict_after, 0);
    setenv("FUNNEL_SHOW_LIMIT", "1", 1);
    setenv("FUNNEL_LEND", "1", 1);
    setenv("FUNNEL_OVERSUBSCRIBE", "1", 1);
    setenv("FUNNEL_EVICT_AFTER", "600", 1);
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "x", 1);
    setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G,nonsense,GPU-ab=512MB,", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "2", 1);
    limits_init_from_environment(&limits);
    assert_int_equal(limits.sm_centipercent, 10000);
    assert_int_equal(limits.priority, 0);
    assert_true(limits.totals_show_limit);
    assert_true(limits.lend);
    assert_true(limits.oversubscribe);
    assert_int_equal(limits.evict_after, 600);
    assert_int_equal(limits.device_count, 2);
    assert_string_equal(limits_memory_text(&limits, "gpu-AB"), "512M");
    setenv("FUNNEL_EVICT_AFTER", "10m", 1);
    limits_init_from_environment(&limits);
    assert_int_equal(limits.evict_after, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_environment, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
