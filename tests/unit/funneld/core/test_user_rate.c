/* SPDX-License-Identifier: Apache-2.0 */
/* What one user does too often waits; what others do does not. */
#include "user_rate.h"

#include "clock.h"
#include "unit.h"

#define NOW (1000 * NS_PER_SEC)

static struct user_rate rate;

static int setup(void **state)
{
    (void)state;
    rate = (struct user_rate){.interval_ns = NS_PER_SEC, .burst = 10};
    return 0;
}

static void a_burst_is_allowed(void **state)
{
    (void)state;
    rate.interval_ns = NS_PER_SEC / 50;
    rate.burst = 500;
    for (unsigned i = 0; i < 500; i++)
        assert_int_equal(user_rate_charge(&rate, 7, NOW), 0);
    assert_int_equal(user_rate_charge(&rate, 7, NOW), NS_PER_SEC / 50);
    assert_int_equal(user_rate_charge(&rate, 7, NOW), 2 * NS_PER_SEC / 50);
    assert_int_equal(user_rate_charge(&rate, 8, NOW), 0);
}

static void time_gives_it_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 30; i++)
        user_rate_charge(&rate, 7, NOW);
    assert_int_equal(user_rate_charge(&rate, 7, NOW + 21 * NS_PER_SEC), 0);
    assert_int_equal(user_rate_charge(&rate, 7, NOW + 21 * NS_PER_SEC), NS_PER_SEC);
}

static void the_oldest_user_gives_way(void **state)
{
    (void)state;
    for (uid_t uid = 0; uid <= USER_RATE_USERS; uid++)
        for (unsigned i = 0; i < 20; i++)
            user_rate_charge(&rate, uid, NOW + uid);
    assert_int_not_equal(user_rate_charge(&rate, USER_RATE_USERS, NOW + 500), 0);
    assert_int_not_equal(user_rate_charge(&rate, 1, NOW + 500), 0);
    assert_int_equal(user_rate_charge(&rate, 0, NOW + 500), 0);
}

static void refused_calls_are_not_counted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        assert_true(user_rate_take(&rate, 7, NOW));
    for (unsigned i = 0; i < 100; i++)
        assert_false(user_rate_take(&rate, 7, NOW));
    assert_true(user_rate_take(&rate, 8, NOW));
    assert_true(user_rate_take(&rate, 7, NOW + NS_PER_SEC));
    assert_false(user_rate_take(&rate, 7, NOW + NS_PER_SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_burst_is_allowed, setup),
        cmocka_unit_test_setup(time_gives_it_back, setup),
        cmocka_unit_test_setup(the_oldest_user_gives_way, setup),
        cmocka_unit_test_setup(refused_calls_are_not_counted, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
