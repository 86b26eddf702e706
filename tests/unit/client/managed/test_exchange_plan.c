/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks of managed memory leave the device for others. */
#include "unit.h"

#include "exchange_plan.h"

#define CHUNKS 5u

static struct exchange_chunk chunks[CHUNKS];
static const struct exchange_chunk *all[CHUNKS], *out[CHUNKS];

/* Each of 10 bytes, on device 0, used one after the other from time 1 on. */
static void begin(void)
{
    for (unsigned i = 0; i < CHUNKS; i++) {
        chunks[i] = (struct exchange_chunk){.address = 100 * (i + 1), .size = 10, .used = i + 1};
        all[i] = &chunks[i];
    }
}

static size_t plan(uint64_t size, uint64_t limit)
{
    return exchange_plan(all, CHUNKS, 0, size, limit, out, CHUNKS);
}

static void the_least_recently_used_go(void **state)
{
    (void)state;
    begin();
    chunks[1].used = 50;
    assert_int_equal(plan(15, UINT64_MAX), 2);
    assert_ptr_equal(out[0], &chunks[0]);
    assert_ptr_equal(out[1], &chunks[2]);
    assert_int_equal(plan(1, UINT64_MAX), 1);
    assert_ptr_equal(out[0], &chunks[0]);
}

static void nothing_goes_that_is_not_enough(void **state)
{
    (void)state;
    begin();
    assert_int_equal(plan(51, UINT64_MAX), 0);
    assert_int_equal(plan(50, UINT64_MAX), 5);
    assert_int_equal(exchange_plan(all, CHUNKS, 0, 50, UINT64_MAX, out, 4), 0);
    assert_int_equal(exchange_plan(all, 0, 0, 1, UINT64_MAX, out, CHUNKS), 0);
}

static void pieces_used_since_stay(void **state)
{
    (void)state;
    begin();
    assert_int_equal(plan(20, 3), 2);
    assert_int_equal(plan(20, 2), 0);
    assert_int_equal(plan(10, 2), 1);
    assert_int_equal(plan(10, 1), 0);
}

static void only_what_is_on_the_device_can_go(void **state)
{
    (void)state;
    begin();
    chunks[0].out = true;
    chunks[1].device = 1;
    assert_int_equal(plan(10, UINT64_MAX), 1);
    assert_ptr_equal(out[0], &chunks[2]);
    assert_int_equal(plan(31, UINT64_MAX), 0);
    assert_int_equal(exchange_plan(all, CHUNKS, 1, 10, UINT64_MAX, out, CHUNKS), 1);
    assert_ptr_equal(out[0], &chunks[1]);
}

static void wishes_come_first(void **state)
{
    (void)state;
    begin();
    chunks[0].wish = WISH_DEVICE;
    chunks[4].wish = WISH_HOST;
    assert_int_equal(plan(50, UINT64_MAX), 5);
    assert_ptr_equal(out[0], &chunks[4]);
    assert_ptr_equal(out[1], &chunks[1]);
    assert_ptr_equal(out[4], &chunks[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_recently_used_go),
        cmocka_unit_test(nothing_goes_that_is_not_enough),
        cmocka_unit_test(pieces_used_since_stay),
        cmocka_unit_test(only_what_is_on_the_device_can_go),
        cmocka_unit_test(wishes_come_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
