/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how many clients a server has addresses, and how much it keeps of clients that have gone.
 */
#include "fake_driver.h"
#include "page_lock.h"
#include "window.h"

#define GIB (1ull << 30)

static unsigned limit_for(uint64_t memory)
{
    const struct devices devices = {.count = 1, .stride = memory + memory / 4 + GIB};

    return windows_limit(&devices);
}

static void hundreds_of_clients_on_large_devices(void **state)
{
    (void)state;
    assert_true(limit_for(141 * GIB) >= 256);
    assert_true(limit_for(80 * GIB) >= 400);
    assert_true(limit_for(8 * GIB) >= 512);
}

static unsigned regions; /* that are page-locked */

static CUresult reserve(CUdeviceptr *ret_address, size_t size, size_t alignment, CUdeviceptr wanted,
                        unsigned long long flags)
{
    *ret_address = wanted;
    return CUDA_SUCCESS;
}

/* Those of an earlier test are in use. */
static CUresult give_back(CUdeviceptr address, size_t size)
{
    return CUDA_SUCCESS;
}

static CUresult lock(void *address, size_t size, unsigned flags)
{
    regions++;
    return CUDA_SUCCESS;
}

static CUresult unlock(void *address)
{
    regions--;
    return CUDA_SUCCESS;
}

static CUresult find(CUdeviceptr *ret_address, void *address, unsigned flags)
{
    *ret_address = (uintptr_t)address;
    return CUDA_SUCCESS;
}

/* A server's windows live as long as the server, so each test keeps its own forever. */
static struct windows *make_windows(const struct fixture *fixture)
{
    static const struct page_lock_options options = {.whole = false};
    static struct devices devices;
    static struct windows all[3];
    static unsigned count;
    static struct page_locker locker;
    struct windows *windows = &all[count++];

    devices = (struct devices){.count = 1, .stride = GIB, .gate = fixture->server.devices.gate};
    regions = 0;
    driver.cuMemAddressReserve = reserve;
    driver.cuMemAddressFree = give_back;
    driver.cuMemHostRegister_v2 = lock;
    driver.cuMemHostUnregister = unlock;
    driver.cuMemHostGetDevicePointer_v2 = find;
    page_locker_init(&locker, devices.gate, &options);
    windows_init(windows, &devices, &locker);
    return windows;
}

/* A client that comes back again and again gets new memory each time, but leaves little behind. */
static void clients_that_have_gone_hold_little(void **state)
{
    const struct fixture *fixture = *state;
    struct windows *windows = make_windows(fixture);
    struct window *window;

    for (unsigned i = 0; i < 300; i++) {
        unsigned before = regions;
        assert_int_equal(windows_take(windows, &window), CUDA_SUCCESS);
        assert_true(regions >= before); /* nothing is unlocked beside the others' kernels */
        assert_int_equal(*window_fence(window, 0), 0);
        *window_fence(window, 0) = 1;
        windows_put_back(windows, window);
        while (windows_are_over_budget(windows))
            assert_true(windows_trim(windows));
    }
    assert_in_range(regions, 1, 40);
}

/* A client that needs another window waits until one is trimmed. */
static void there_is_a_limit_of_what_they_hold(void **state)
{
    const struct fixture *fixture = *state;
    struct windows *windows = make_windows(fixture);
    struct window *window, *other;
    unsigned count = 0;
    CUresult result;

    for (; (result = windows_take(windows, &window)) == CUDA_SUCCESS; count++)
        windows_put_back(windows, window);
    assert_int_equal(result, CUDA_ERROR_NOT_READY);
    assert_in_range(count, 64, 256);
    assert_int_equal(windows_take_at(windows, window->base, &window), CUDA_ERROR_NOT_READY);
    while (windows_trim(windows))
        ;
    assert_int_equal(windows_take_at(windows, window->base, &window), CUDA_SUCCESS);
    assert_int_equal(windows_take(windows, &other), CUDA_SUCCESS);
    windows_put_back(windows, window);
    windows_put_back(windows, other);
}

static bool is_first(void *context, uint64_t base)
{
    return base == *(const uint64_t *)context;
}

/* A client of another server may come for its window, so a new one gets another. */
static void claimed_windows_are_for_their_clients(void **state)
{
    const struct fixture *fixture = *state;
    struct windows *windows = make_windows(fixture);
    struct window *window, *other;
    uint64_t base;

    assert_int_equal(windows_take(windows, &window), CUDA_SUCCESS);
    base = window->base;
    windows_put_back(windows, window);
    windows_set_claims(windows, is_first, &base);
    assert_true(windows_trim(windows));
    assert_int_equal(windows_take(windows, &other), CUDA_SUCCESS);
    assert_int_not_equal(other->base, base);
    assert_int_equal(windows_take_at(windows, base, &window), CUDA_SUCCESS);
    windows_put_back(windows, window);
    windows_put_back(windows, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hundreds_of_clients_on_large_devices),
        cmocka_unit_test_setup_teardown(clients_that_have_gone_hold_little, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(there_is_a_limit_of_what_they_hold, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(claimed_windows_are_for_their_clients, fixture_setup,
                                        fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
