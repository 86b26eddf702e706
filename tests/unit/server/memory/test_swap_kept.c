/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that leaves and returns at random, beside a model. No two copies have the same place in
 * the pool. Kept copies make room for contents, and a copy that comes back is the granule's own.
 */
#include "swap_kept.h"

#include <stdlib.h>

#include "fake_driver.h"
#include "memory_state.h"
#include "quota.h"
#include "swap.h"
#include "swap_copy.h"

#define GRANULES 12u
#define STEPS 4000u
#define CHUNKS_OF_POOL 6u

static struct granule granules[GRANULES];
static uint64_t versions[GRANULES]; /* of the contents of the last copy */
static uint64_t random_state = 36;

static CUresult reserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                        unsigned long long flags)
{
    *ptr = addr;
    return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr ptr, size_t size)
{
    return CUDA_SUCCESS;
}

static int setup(void **state)
{
    if (fixture_setup(state))
        return -1;
    driver.cuMemAddressReserve = reserve;
    driver.cuMemAddressFree = unreserve;
    return server_quotas_init("swap-memory=384M"); /* CHUNKS_OF_POOL */
}

static uint32_t pick(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static struct swap_pool *pool_of(const struct fixture *fixture)
{
    return &fixture->server.memory->swap_pool;
}

/* ---- what may happen ---- */

static void make_granule(struct granule *granule)
{
    *granule = (struct granule){
        .kind = GRANULE_DEVICE, .size = (1 + pick(50)) * SWAP_SLOT, .kept = REVOCABLE_NONE};
}

/* False: there is no room, although nothing is kept any more. */
static bool take_new(struct fixture *fixture, struct granule *granule)
{
    struct session *session = fixture->session;
    unsigned count = (unsigned)((granule->size + SWAP_CHUNK - 1) / SWAP_CHUNK);
    CUresult result = swap_copy_begin(session, granule, count);
    struct swap_copy *copy = granule->swapped;

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = swap_keep_take(session, &fixture->server.devices.device[0],
                                swap_segment_size(copy, i), &copy->segments[i]);
        copy->count += result == CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS)
        return true;
    assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pool_of(fixture)->kept, 0);
    swap_forget(session, granule);
    return false;
}

static void leave(struct fixture *fixture, unsigned index)
{
    struct granule *granule = &granules[index];

    swap_keep_claim(fixture->session, granule);
    if (granule->swapped) {
        assert_int_equal(granule->swapped->hashes->word[0], index);
        assert_int_equal(granule->swapped->hashes->word[1], versions[index]);
    } else if (!take_new(fixture, granule)) {
        return;
    }
    free(granule->swapped->hashes);
    granule->swapped->hashes = calloc(1, sizeof(*granule->swapped->hashes));
    *granule->swapped->hashes = (struct chunk_hash){{index, ++versions[index]}};
}

static void end(struct fixture *fixture, struct granule *granule)
{
    if (granule->swapped)
        swap_forget(fixture->session, granule);
    swap_keep_end(fixture->session, granule);
    make_granule(granule);
}

static void make_step(struct fixture *fixture)
{
    unsigned index = pick(GRANULES);

    if (!pick(10))
        end(fixture, &granules[index]);
    else if (granules[index].swapped)
        swap_keep(fixture->session, &granules[index]);
    else
        leave(fixture, index);
}

/* ---- what holds ---- */

static void count_slots(const struct swap_pool *pool, const struct swap_copy *copy, uint32_t *used)
{
    for (unsigned i = 0; i < copy->count; i++)
        for (uint64_t at = 0; at < swap_segment_size(copy, i); at += SWAP_SLOT) {
            unsigned chunk = 0;
            while (copy->segments[i] + at - pool->chunks[chunk].address >= SWAP_CHUNK)
                chunk++;
            uint32_t slot =
                1u << ((copy->segments[i] + at - pool->chunks[chunk].address) / SWAP_SLOT);
            assert_false(used[chunk] & slot);
            used[chunk] |= slot;
        }
}

static void check(const struct fixture *fixture)
{
    const struct swap_pool *pool = pool_of(fixture);
    uint32_t used[CHUNKS_OF_POOL] = {0};
    uint64_t swapped = 0, kept = 0;

    for (unsigned i = 0; i < GRANULES; i++) {
        const struct swap_copy *copy =
            granules[i].swapped ? granules[i].swapped : granules[i].kept_copy;
        if (!copy || !copy->count)
            continue;
        *(granules[i].swapped ? &swapped : &kept) += granules[i].size;
        count_slots(pool, copy, used);
    }
    assert_int_equal(pool->used, swapped);
    assert_int_equal(pool->kept, kept);
    assert_int_equal(swap_bytes(fixture->session, 0), swapped);
    for (unsigned i = 0; i < CHUNKS_OF_POOL; i++)
        assert_int_equal(used[i], pool->chunks[i].address ? pool->chunks[i].used : 0);
}

static void test_random_moves(void **state)
{
    struct fixture *fixture = *state;

    for (unsigned i = 0; i < GRANULES; i++)
        make_granule(&granules[i]);
    for (unsigned i = 0; i < STEPS; i++) {
        make_step(fixture);
        check(fixture);
    }
    for (unsigned i = 0; i < GRANULES; i++)
        end(fixture, &granules[i]);
    check(fixture);
    swap_trim(&fixture->server);
    assert_int_equal(pool_of(fixture)->bytes, 0);
}

/* A copy without hashes tells nothing about changes. */
static void test_without_hashes(void **state)
{
    struct fixture *fixture = *state;

    make_granule(&granules[0]);
    assert_true(take_new(fixture, &granules[0]));
    swap_keep(fixture->session, &granules[0]);
    assert_null(granules[0].swapped);
    assert_null(granules[0].kept_copy);
    assert_int_equal(pool_of(fixture)->used, 0);
    swap_trim(&fixture->server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_moves, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_without_hashes, setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
