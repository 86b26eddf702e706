/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator under several threads and one lock. What a block holds is plain memory, so
 * ThreadSanitizer sees where two threads have the same one.
 */
#include "stress_threads.h"
#include "suballoc.h"

#define BASE UINT64_C(0x200000000000)
#define PAGES 4096u
#define HELD 8u

static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static struct suballoc allocator;
static unsigned char pages[PAGES]; /* which thread has each 512 bytes, from 1; 0 = none */

static unsigned char *page_of(uint64_t address)
{
    return &pages[(address - BASE) / SUBALLOC_ALIGNMENT];
}

static bool paint(uint64_t address, unsigned count, unsigned char from, unsigned char to)
{
    unsigned char *page = page_of(address);
    bool right = true;

    for (unsigned i = 0; i < count; i++) {
        right &= page[i] == from;
        page[i] = to;
    }
    return right;
}

struct held {
    uint64_t address;
    unsigned count;
};

static bool take(struct held *held, unsigned count, unsigned char mine)
{
    pthread_mutex_lock(&pool);
    held->address = suballoc_take(&allocator, (uint64_t)count * SUBALLOC_ALIGNMENT, NULL);
    pthread_mutex_unlock(&pool);
    held->count = held->address ? count : 0;
    return paint(held->count ? held->address : BASE, held->count, 0, mine);
}

static bool give(struct held *held, unsigned char mine)
{
    if (!held->count)
        return true;
    bool right = paint(held->address, held->count, mine, 0);
    pthread_mutex_lock(&pool);
    right &= suballoc_give(&allocator, held->address) == 0;
    pthread_mutex_unlock(&pool);
    held->count = 0;
    return right;
}

static void *take_and_give(void *number)
{
    unsigned char mine = (unsigned char)((uintptr_t)number + 1);
    struct held held[HELD] = {0};
    uint64_t random = mine;
    uintptr_t failures = 0;

    for (unsigned round = 0; round < 10 * ROUNDS; round++) {
        struct held *one = &held[unit_random(&random) % HELD];
        failures +=
            one->count ? !give(one, mine) : !take(one, 1 + unit_random(&random) % 200, mine);
    }
    for (unsigned i = 0; i < HELD; i++)
        failures += !give(&held[i], mine);
    return (void *)failures;
}

static void test_no_block_is_taken_twice(void **state)
{
    suballoc_init(&allocator);
    assert_int_equal(suballoc_add_granule(&allocator, BASE, PAGES * SUBALLOC_ALIGNMENT), 0);
    run_threads(take_and_give);
    assert_int_equal(allocator.free_bytes, PAGES * SUBALLOC_ALIGNMENT);
    suballoc_fini(&allocator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_block_is_taken_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
