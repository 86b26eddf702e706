/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of the context that all clients share. A client that raises one is charged for it, and
 * they are restored when the last client has left.
 */
#include "context_limit.h"

#include "fake_driver.h"
#include "memory_state.h"

#define SMS 100
#define THREADS_PER_SM 2048
#define MIB (1ull << 20)

static size_t limits[CU_LIMIT_MAX];
static CUresult refusal;

static CUresult get_limit(size_t *ret_value, CUlimit limit)
{
    *ret_value = limits[limit];
    return CUDA_SUCCESS;
}

static CUresult set_limit(CUlimit limit, size_t value)
{
    if (refusal == CUDA_SUCCESS)
        limits[limit] = value;
    return refusal;
}

static int setup(void **state)
{
    int error = fixture_setup(state);
    struct fixture *fixture = *state;
    struct device_record *record = &fixture->server.devices.device[0].record;

    driver.cuCtxGetLimit = get_limit;
    driver.cuCtxSetLimit = set_limit;
    refusal = CUDA_SUCCESS;
    record->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = SMS;
    record->attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = THREADS_PER_SM;
    record->limits[CU_LIMIT_STACK_SIZE] = limits[CU_LIMIT_STACK_SIZE] = 1024;
    record->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * MIB;
    record->limits_known = 1u << CU_LIMIT_STACK_SIZE | 1u << CU_LIMIT_MALLOC_HEAP_SIZE;
    return error;
}

static CUresult ask(struct fixture *fixture, CUlimit limit, uint64_t value)
{
    const struct wire_cuCtxSetLimit in = {.limit = limit, .value = value};

    return serve_cuCtxSetLimit(fixture->session, &in);
}

static uint64_t used(const struct fixture *fixture)
{
    return fixture->session->memory->device[0].used;
}

static void raising_a_limit_is_charged(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
    assert_int_equal(used(fixture), 1024ull * SMS * THREADS_PER_SM);
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 1500), CUDA_SUCCESS);
    assert_int_equal(limits[CU_LIMIT_STACK_SIZE], 2048); /* another client may need it */
    assert_int_equal(used(fixture), 1024ull * SMS * THREADS_PER_SM);
}

static void a_limit_is_not_raised_beyond_the_clients_memory(void **state)
{
    struct fixture *fixture = *state;

    fixture->session->limits.memory[0] = 64 * MIB;
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 2048), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(limits[CU_LIMIT_STACK_SIZE], 1024);
    assert_int_equal(ask(fixture, CU_LIMIT_MALLOC_HEAP_SIZE, 40 * MIB), CUDA_SUCCESS);
    assert_int_equal(used(fixture), 32 * MIB);
}

/* The client that comes second does not get it for nothing. */
static void each_client_pays_for_all_of_it(void **state)
{
    struct fixture *fixture = *state;

    limits[CU_LIMIT_STACK_SIZE] = 4096; /* as another client wants it */
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
    assert_int_equal(used(fixture), 1024ull * SMS * THREADS_PER_SM);
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 5120), CUDA_SUCCESS);
    assert_int_equal(used(fixture), 4096ull * SMS * THREADS_PER_SM);
    assert_int_equal(limits[CU_LIMIT_STACK_SIZE], 5120);
    fixture->session->limits.memory[0] = 4097ull * SMS * THREADS_PER_SM;
    limits[CU_LIMIT_STACK_SIZE] = 8192;
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 8192), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(used(fixture), 4096ull * SMS * THREADS_PER_SM);
}

/* As CUDA says. */
static void a_limit_in_use_is_not_set(void **state)
{
    struct fixture *fixture = *state;

    fixture->session->limits_used[0] = 1u << CU_LIMIT_MALLOC_HEAP_SIZE;
    assert_int_equal(ask(fixture, CU_LIMIT_MALLOC_HEAP_SIZE, 40 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(limits[CU_LIMIT_MALLOC_HEAP_SIZE], 8 * MIB);
    assert_int_equal(used(fixture), 0);
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
}

/* Then the driver does not raise it any more, and the client does not pay for it. */
static void a_printf_buffer_that_another_client_uses_stays(void **state)
{
    struct fixture *fixture = *state;

    refusal = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(ask(fixture, CU_LIMIT_PRINTF_FIFO_SIZE, 40 * MIB), CUDA_SUCCESS);
    assert_int_equal(used(fixture), 0);
    assert_int_equal(ask(fixture, CU_LIMIT_MALLOC_HEAP_SIZE, 40 * MIB), CUDA_ERROR_INVALID_VALUE);
}

static void limits_that_do_not_exist(void **state)
{
    assert_int_equal(ask(*state, (CUlimit)DEVICE_LIMITS_MAX, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
    assert_int_equal(ask(*state, (CUlimit)UINT32_MAX, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

/* It would be missing for all others. */
static void nothing_is_set_aside_of_the_cache(void **state)
{
    limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = MIB;
    assert_int_equal(ask(*state, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 32 * MIB), CUDA_SUCCESS);
    assert_int_equal(limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE], MIB);
}

static void a_refusal_costs_nothing(void **state)
{
    struct fixture *fixture = *state;

    refusal = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 2048), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(used(fixture), 0);
}

static void restored_when_no_client_is_left(void **state)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    const struct device *device = &server->devices.device[0];

    assert_int_equal(ask(fixture, CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
    pthread_mutex_init(&server->lock, NULL);
    list_init(&server->sessions);
    list_append(&server->sessions, &fixture->session->link);
    assert_false(context_limits_restore(server, device));
    assert_int_equal(limits[CU_LIMIT_STACK_SIZE], 4096);
    list_remove(&fixture->session->link);
    assert_true(context_limits_restore(server, device));
    assert_int_equal(limits[CU_LIMIT_STACK_SIZE], 1024);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(raising_a_limit_is_charged),
        CASE(a_limit_is_not_raised_beyond_the_clients_memory),
        CASE(each_client_pays_for_all_of_it),
        CASE(a_limit_in_use_is_not_set),
        CASE(a_printf_buffer_that_another_client_uses_stays),
        CASE(limits_that_do_not_exist),
        CASE(nothing_is_set_aside_of_the_cache),
        CASE(a_refusal_costs_nothing),
        CASE(restored_when_no_client_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
