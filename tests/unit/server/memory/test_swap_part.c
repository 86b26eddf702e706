/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that leaves and returns in parts at random, beside a model of all contents. The device has
 * what the program has written, whatever has failed in between.
 */
#include "swap.h"

#include <stdlib.h>

#include "device_granule.h"
#include "fake_driver.h"
#include "memory_state.h"
#include "quota.h"
#include "swap_copy.h"
#include "swap_pool.h"

#define GRANULES 14u
#define STEPS 3000u
#define SLOT (2ull << 20)
#define PLACES 65536u

/* What each slot of addresses has: 0 = no memory. */
static struct place {
    uint64_t slot;
    unsigned version;
} places[PLACES];

static uint64_t addresses[GRANULES];
static unsigned versions[GRANULES], last_version;
static uint64_t random_state = 36;
static unsigned creations_left; /* before the device is full; 0 = it is not */

static uint32_t pick(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static unsigned *version_at(uint64_t address)
{
    uint64_t slot = address / SLOT;
    unsigned at = (unsigned)(slot * 2654435761u) % PLACES;

    while (places[at].slot && places[at].slot != slot)
        at = (at + 1) % PLACES;
    places[at].slot = slot;
    return &places[at].version;
}

static void set_version(uint64_t address, uint64_t size, unsigned version)
{
    for (uint64_t at = 0; at < size; at += SLOT)
        *version_at(address + at) = version;
}

/* ---- the driver ---- */

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

static CUresult create(CUmemGenericAllocationHandle *ret_handle, size_t size,
                       const CUmemAllocationProp *prop, unsigned long long flags)
{
    static CUmemGenericAllocationHandle last;

    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && creations_left && !--creations_left)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_handle = ++last;
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    return CUDA_SUCCESS;
}

/* New memory has contents of no client. */
static CUresult map(CUdeviceptr address, size_t size, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    assert_int_equal(*version_at(address), 0);
    set_version(address, size, ++last_version);
    return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
    set_version(address, size, 0);
    return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                           size_t count)
{
    return CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    for (uint64_t at = 0; at < size; at += SLOT) {
        assert_int_not_equal(*version_at(src + at), 0);
        assert_int_not_equal(*version_at(dst + at), 0);
        *version_at(dst + at) = *version_at(src + at);
    }
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream)
{
    return CUDA_SUCCESS;
}

static int setup(void **state)
{
    if (fixture_setup_connected(state))
        return -1;
    driver.cuMemAddressReserve = reserve;
    driver.cuMemAddressFree = unreserve;
    driver.cuMemCreate = create;
    driver.cuMemRelease = release;
    driver.cuMemMap = map;
    driver.cuMemUnmap = unmap;
    driver.cuMemSetAccess = set_access;
    driver.cuMemcpyAsync = copy;
    driver.cuStreamSynchronize = synchronize;
    ((struct fixture *)*state)->server.memory->hasher.has_failed = true; /* no device hashes */
    return server_quotas_init("swap-memory=512M");
}

/* ---- the program ---- */

static struct granule *granule_at(const struct fixture *fixture, unsigned index)
{
    return device_granule_find(fixture->session, addresses[index]);
}

static void write_all(const struct fixture *fixture)
{
    for (unsigned i = 0; i < GRANULES; i++) {
        if (pick(2))
            continue;
        versions[i] = ++last_version;
        set_version(addresses[i], granule_at(fixture, i)->size, versions[i]);
    }
}

static void make_granules(struct fixture *fixture)
{
    for (unsigned i = 0; i < GRANULES; i++) {
        uint64_t size = (1 + pick(40)) * SLOT;
        const struct wire_fnGranuleCreate in = {.size = size, .room = size};
        struct wire_fnGranuleCreate_reply out;
        assert_int_equal(serve_fnGranuleCreate(fixture->session, &in, &out), CUDA_SUCCESS);
        addresses[i] = out.address;
        versions[i] = *version_at(out.address);
    }
}

/* ---- what may happen ---- */

static uint64_t largest(const struct fixture *fixture)
{
    uint64_t size = 0;

    for (unsigned i = 0; i < GRANULES; i++)
        if (granule_at(fixture, i)->size > size)
            size = granule_at(fixture, i)->size;
    return size;
}

/* Copies of some are kept when they return, as if a device had hashed them. */
static void give_hashes(const struct fixture *fixture)
{
    for (unsigned i = 0; i < GRANULES; i++) {
        struct swap_copy *kept = granule_at(fixture, i)->swapped;
        if (kept && !kept->hashes && pick(2))
            kept->hashes = calloc(swap_file_chunks(kept->size), sizeof(*kept->hashes));
    }
}

static void leave(struct fixture *fixture, const struct swap_part *part)
{
    struct session *session = fixture->session;
    uint64_t before = swap_bytes(session, 0), here = swap_bytes_here(session, 0), copied;
    enum suspend_result result = swap_out(session, part, &copied);
    uint64_t left = swap_bytes(session, 0) - before;

    if (result != SUSPEND_OK) {
        assert_int_equal(result, SUSPEND_POOL_FULL);
        assert_int_equal(left, 0);
    } else if (!part) {
        assert_int_equal(left, here);
    } else {
        assert_true(left >= part->bytes || left == here);
        assert_true(left < part->bytes + largest(fixture));
    }
    give_hashes(fixture);
}

static void come_back(struct fixture *fixture, struct swap_room *room)
{
    struct session *session = fixture->session;
    uint64_t before = swap_bytes(session, 0), most = room ? room->bytes[0] : before;
    enum suspend_result result = swap_in(session, room);
    uint64_t returned = before - swap_bytes(session, 0);

    if (result != SUSPEND_OK) {
        assert_int_equal(result, SUSPEND_NO_MEMORY);
        assert_int_equal(returned, 0);
    } else {
        assert_true(returned <= most);
        assert_true(room || returned == before);
        assert_int_equal(room ? room->bytes[0] + returned : most, most);
    }
    creations_left = 0;
}

static void make_step(struct fixture *fixture)
{
    const struct swap_part part = {0, 1 + pick(100) * SLOT};
    struct swap_room room = {{pick(100) * SLOT}};

    switch (pick(6)) {
    case 0:
        if (!swap_bytes(fixture->session, 0))
            write_all(fixture);
        break;
    case 1:
        leave(fixture, NULL);
        break;
    case 2:
    case 3:
        leave(fixture, &part);
        break;
    case 4:
        creations_left = pick(2) ? 1 + pick(GRANULES) : 0;
        come_back(fixture, &room);
        break;
    default:
        creations_left = pick(2) ? 1 + pick(GRANULES) : 0;
        come_back(fixture, NULL);
    }
}

/* ---- what holds ---- */

static void check(const struct fixture *fixture)
{
    uint64_t here = 0, away = 0, used, peak;

    for (unsigned i = 0; i < GRANULES; i++) {
        const struct granule *granule = granule_at(fixture, i);
        assert_int_equal(granule->is_away, granule->swapped != NULL);
        *(granule->is_away ? &away : &here) += granule->size;
        for (uint64_t at = 0; at < granule->size; at += SLOT)
            assert_int_equal(*version_at(addresses[i] + at), granule->is_away ? 0 : versions[i]);
    }
    memory_usage(fixture->session, 0, &used, &peak);
    assert_int_equal(used, here);
    assert_int_equal(swap_bytes_here(fixture->session, 0), here);
    assert_int_equal(swap_bytes(fixture->session, 0), away);
}

static void test_random_parts(void **state)
{
    struct fixture *fixture = *state;

    make_granules(fixture);
    for (unsigned i = 0; i < STEPS; i++) {
        make_step(fixture);
        check(fixture);
    }
    come_back(fixture, NULL);
    check(fixture);
    leave(fixture, &(struct swap_part){0, 100 * SLOT});
    memory_release_all(fixture->session);
    assert_int_equal(fixture->server.memory->swap_pool.used, 0);
    swap_trim(&fixture->server);
    assert_int_equal(fixture->server.memory->swap_pool.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_parts, setup, fixture_teardown_connected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
