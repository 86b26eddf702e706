/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of one user that attach too often wait; those of others do not. */
#include "attach_rate.h"

#include "clock.h"
#include "unit.h"

#define NOW (1000 * NS_PER_SEC)

static struct attach_rate attach_rate;

static int setup(void **state)
{
    (void)state;
    attach_rate = (struct attach_rate){0};
    return 0;
}

static void a_burst_is_allowed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50 * ATTACH_BURST_S; i++)
        assert_int_equal(attach_rate_charge(&attach_rate, 7, 50, NOW), 0);
    assert_int_equal(attach_rate_charge(&attach_rate, 7, 50, NOW), NS_PER_SEC / 50);
    assert_int_equal(attach_rate_charge(&attach_rate, 7, 50, NOW), 2 * NS_PER_SEC / 50);
    assert_int_equal(attach_rate_charge(&attach_rate, 8, 50, NOW), 0);
}

static void time_gives_it_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 30; i++)
        attach_rate_charge(&attach_rate, 7, 1, NOW);
    assert_int_equal(attach_rate_charge(&attach_rate, 7, 1, NOW + 21 * NS_PER_SEC), 0);
    assert_int_equal(attach_rate_charge(&attach_rate, 7, 1, NOW + 21 * NS_PER_SEC), NS_PER_SEC);
}

static void the_oldest_user_gives_way(void **state)
{
    (void)state;
    for (uid_t uid = 0; uid <= ATTACH_USERS; uid++)
        for (unsigned i = 0; i < 20; i++)
            attach_rate_charge(&attach_rate, uid, 1, NOW + uid);
    assert_int_not_equal(attach_rate_charge(&attach_rate, ATTACH_USERS, 1, NOW + 500), 0);
    assert_int_not_equal(attach_rate_charge(&attach_rate, 1, 1, NOW + 500), 0);
    assert_int_equal(attach_rate_charge(&attach_rate, 0, 1, NOW + 500), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_burst_is_allowed, setup),
        cmocka_unit_test_setup(time_gives_it_back, setup),
        cmocka_unit_test_setup(the_oldest_user_gives_way, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
