/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in quarantine, and for how long. */
#include "quarantine.h"

#include "clock.h"
#include "text.h"
#include "unit.h"

#define SECONDS(count) (NS_PER_SEC * (count))

static const uint64_t start = SECONDS(1000ull);

static void test_three_within_a_minute(void **state)
{
    struct quarantine quarantine = {0};

    assert_false(quarantine_add_fault(&quarantine, 7, "a", start));
    assert_false(quarantine_add_fault(&quarantine, 7, "a", start + SECONDS(30)));
    assert_false(quarantine_has(&quarantine, 7, "a", start + SECONDS(31)));
    assert_true(quarantine_add_fault(&quarantine, 7, "a", start + SECONDS(60)));
    assert_true(quarantine_has(&quarantine, 7, "a", start + SECONDS(61)));
    assert_false(quarantine_has(&quarantine, 7, "b", start + SECONDS(61)));
    assert_false(quarantine_has(&quarantine, 8, "a", start + SECONDS(61)));
    assert_true(quarantine_has_user(&quarantine, 7, start + SECONDS(61)));
    assert_false(quarantine_has_user(&quarantine, 8, start + SECONDS(61)));
}

static void test_seldom(void **state)
{
    struct quarantine quarantine = {0};

    for (unsigned i = 0; i < 20; i++)
        assert_false(quarantine_add_fault(&quarantine, 7, "a", start + SECONDS(31) * i));
    assert_false(quarantine_has(&quarantine, 7, "a", start + SECONDS(31) * 20));
}

/* Each fault in quarantine begins the ten minutes anew. */
static void test_end(void **state)
{
    struct quarantine quarantine = {0};

    for (unsigned i = 0; i < 3; i++)
        quarantine_add_fault(&quarantine, 7, "a", start);
    assert_true(quarantine_has(&quarantine, 7, "a", start + SECONDS(599)));
    assert_false(quarantine_add_fault(&quarantine, 7, "a", start + SECONDS(599)));
    assert_true(quarantine_has(&quarantine, 7, "a", start + SECONDS(1198)));
    assert_false(quarantine_has(&quarantine, 7, "a", start + SECONDS(1199)));
    assert_false(quarantine_has_user(&quarantine, 7, start + SECONDS(1199)));
}

static void test_many_programs(void **state)
{
    struct quarantine quarantine = {0};
    char command[16];

    for (unsigned i = 0; i < 3; i++)
        quarantine_add_fault(&quarantine, 7, "a", start);
    for (unsigned i = 1; i < QUARANTINE_ENTRIES; i++) {
        text_format(command, sizeof(command), "%u", i);
        quarantine_add_fault(&quarantine, 7, command, start + i);
    }
    assert_true(quarantine_has(&quarantine, 7, "a", start + SECONDS(1)));
    quarantine_add_fault(&quarantine, 7, "one more", start + SECONDS(1));
    assert_false(quarantine_has(&quarantine, 7, "a", start + SECONDS(1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_within_a_minute),
        cmocka_unit_test(test_seldom),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_many_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
