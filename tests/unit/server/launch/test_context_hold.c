/* SPDX-License-Identifier: Apache-2.0 */
/* Behind which fences a hold of the GPU begins, and what it consists of. */
#include "context_hold.h"

#include <unistd.h>

#include "client_class.h"
#include "fence.h"
#include "hold_budget.h"
#include "hold_demand.h"
#include "launch_scene.h"

static CUresult events_are, pages_are;
static unsigned writes; /* of holds */

static CUresult load_library(CUlibrary *ret_library, const void *image, CUjit_option *options,
                             void **values, unsigned count, CUlibraryOption *library_options,
                             void **library_values, unsigned library_count)
{
    (void)image;
    (void)options;
    (void)values;
    (void)count;
    (void)library_options;
    (void)library_values;
    (void)library_count;
    *ret_library = (CUlibrary)8;
    return CUDA_SUCCESS;
}

static CUresult get_kernel(CUkernel *ret_kernel, CUlibrary library, const char *name)
{
    (void)library;
    assert_string_equal(name, "funnel_pause");
    *ret_kernel = (CUkernel)9;
    return CUDA_SUCCESS;
}

static CUresult query_event(CUevent event)
{
    (void)event;
    return events_are;
}

static CUresult lock_pages(void *address, size_t size, unsigned flags)
{
    (void)address;
    (void)size;
    (void)flags;
    return pages_are;
}

static CUresult see_address(CUdeviceptr *ret_seen, void *address, unsigned flags)
{
    (void)flags;
    *ret_seen = (uintptr_t)address;
    return CUDA_SUCCESS;
}

/* The GPU does not come to the fence. */
static CUresult write_later(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    writes += stream == (CUstream)3;
    (void)address;
    (void)value;
    (void)flags;
    return CUDA_SUCCESS;
}

/* A critical client beside a batch lane, whose requests take long. */
static int setup_critical(void **state)
{
    if (setup(state))
        return -1;
    struct scene *scene = *state;
    struct server *server = &scene->fixture->server;

    driver.cuLibraryLoadData = load_library;
    driver.cuLibraryGetKernel = get_kernel;
    driver.cuEventQuery = query_event;
    driver.cuMemHostRegister_v2 = lock_pages;
    driver.cuMemHostGetDevicePointer_v2 = see_address;
    driver.cuStreamWriteValue32_v2 = write_later;
    events_are = pages_are = CUDA_SUCCESS;
    writes = 0;
    context_hold_load(server, &server->devices.device[0]);
    context_hold_allow(server, HOLD_BRIEF);
    scene->fixture->session->limits.class = CLASS_CRITICAL;
    fake_trace();
    return 0;
}

#define CRITICAL_CASE(name) cmocka_unit_test_setup_teardown(name, setup_critical, teardown)

/* The requests before are done. */
static const char *fence(struct scene *scene, uint32_t seq)
{
    const struct wire_fnFence in = {.seq = seq};

    atomic_store(scene->stream[0]->fence, seq - 1);
    assert_int_equal(serve_fnFence(scene->fixture->session, &in, scene->stream[0]), CUDA_SUCCESS);
    return fake_trace();
}

/* The client waits for a fence that has come with a command. */
static const char *waiting(struct scene *scene, uint32_t seq)
{
    const struct wire_fnHold in = {.seq = seq};

    assert_int_equal(serve_fnHold(scene->fixture->session, &in, scene->stream[0]), CUDA_SUCCESS);
    return fake_trace();
}

static bool holds(const char *trace)
{
    return strstr(trace, " f9 ") != NULL;
}

/* In a stream of the server's own: no stream of the client waits for one of its events. */
static void a_hold_begins_behind_the_fence(void **state)
{
    const char *trace = fence(*state, 1), *begin = "stream s3 0; event e1; event e2; record e1 s1; "
                                                   "wait s3 e1; launch s3 f9 0 0; ";

    assert_memory_equal(trace, begin, strlen(begin));
    assert_int_equal(writes, 16);
    assert_non_null(strstr(trace, "launch s3 f9 0 0; record e2 s3; "));
    assert_null(strstr(trace, "wait s1"));
    assert_null(strstr(trace, "wait s2"));
}

static void note_kernel(struct scene *scene)
{
    const uint32_t grid[] = {1, 1, 1};

    stream_note_kernel(scene->stream[0], grid);
}

static void a_hold_begins_behind_the_fence_of_a_command(void **state)
{
    struct scene *scene = *state;

    note_kernel(scene);
    fence_expect(scene->stream[0], 7);
    assert_true(holds(waiting(scene, 7)));
}

/* It would come too late. */
static void no_hold_begins_behind_a_copy(void **state)
{
    struct scene *scene = *state;

    note_kernel(scene);
    stream_note_other_work(scene->stream[0]);
    fence_expect(scene->stream[0], 7);
    assert_string_equal(waiting(scene, 7), "");
}

static void a_hold_begins_once_for_a_fence(void **state)
{
    struct scene *scene = *state;

    note_kernel(scene);

    assert_true(holds(fence(scene, 1)));
    assert_string_equal(waiting(scene, 1), "");
}

/* The GPU stays without it. */
static void no_hold_begins_before_more_work(void **state)
{
    struct scene *scene = *state;

    note_kernel(scene);
    fence_expect(scene->stream[0], 8);
    assert_string_equal(waiting(scene, 7), "");
}

static void a_hold_needs_a_critical_client(void **state)
{
    struct scene *scene = *state;

    scene->fixture->session->limits.class = CLASS_NORMAL;
    assert_string_equal(fence(scene, 1), "");
}

static void a_hold_needs_work_in_a_batch_lane(void **state)
{
    struct scene *scene = *state;

    context_hold_allow(&scene->fixture->server, HOLD_NONE);
    assert_string_equal(fence(scene, 1), "");
    context_hold_allow(&scene->fixture->server, HOLD_BRIEF);
    assert_true(holds(fence(scene, 2)));
}

static void a_hold_needs_a_request_that_is_not_done(void **state)
{
    struct scene *scene = *state;

    note_kernel(scene);
    fence_expect(scene->stream[0], 1);
    atomic_store(scene->stream[0]->fence, 1);
    assert_string_equal(waiting(scene, 1), "");
}

static void a_hold_waits_for_the_hold_before_it(void **state)
{
    struct scene *scene = *state;

    note_kernel(scene);
    assert_true(holds(fence(scene, 1)));
    fence_expect(scene->stream[0], 2);
    assert_string_equal(waiting(scene, 2), "");
    atomic_store(scene->stream[0]->fence, 1);
    assert_true(holds(waiting(scene, 2)));
}

static void two_are_pending_at_most(void **state)
{
    struct scene *scene = *state;

    events_are = CUDA_ERROR_NOT_READY;
    assert_true(holds(fence(scene, 1)));
    assert_true(holds(fence(scene, 2)));
    assert_string_equal(fence(scene, 3), "");
    events_are = CUDA_SUCCESS;
    assert_true(holds(fence(scene, 4)));
}

/* Work that never ends keeps the first two, and no others. */
static void one_that_is_stuck_is_left(void **state)
{
    struct scene *scene = *state;
    const char *trace;
    uint32_t seq = 3;

    events_are = CUDA_ERROR_NOT_READY;
    assert_true(holds(fence(scene, 1)));
    assert_true(holds(fence(scene, 2)));
    while (!holds(trace = fence(scene, seq++)))
        usleep(10000);
    assert_non_null(strstr(trace, "destroy s3; destroy e1; destroy e2; destroy e3; stream s4 0; "));
    assert_true(holds(fence(scene, seq++)));
}

/* The client notices nothing. */
static void none_begins_after_a_refusal(void **state)
{
    struct scene *scene = *state;

    fake.refusal = CUDA_ERROR_OUT_OF_MEMORY;
    fence(scene, 1);
    assert_string_equal(fence(scene, 2), "");
}

static void a_device_without_the_kernel_has_none(void **state)
{
    struct scene *scene = *state;

    context_hold_unload(&scene->fixture->server.devices.device[0]);
    assert_string_equal(fence(scene, 1), "");
}

static void a_device_without_the_word_has_none(void **state)
{
    struct scene *scene = *state;
    struct server *server = &scene->fixture->server;

    context_hold_unload(&server->devices.device[0]);
    pages_are = CUDA_ERROR_OUT_OF_MEMORY;
    context_hold_load(server, &server->devices.device[0]);
    assert_string_equal(fence(scene, 1), "");
}

static unsigned count_holds(struct scene *scene, unsigned fences)
{
    unsigned count = 0;

    for (unsigned i = 1; i <= fences; i++)
        count += holds(fence(scene, i));
    return count;
}

static void lasting_ones_need_no_budget(void **state)
{
    struct scene *scene = *state;

    context_hold_allow(&scene->fixture->server, HOLD_LASTING);
    assert_int_equal(count_holds(scene, 10 * HOLD_BURST), 10 * HOLD_BURST);
}

static struct hold_demand *demand_of(const struct scene *scene)
{
    return &scene->fixture->server.devices.device[0].launch->hold_demand;
}

/* The daemon has not said that the batch lane has its share. So few requests never cover a window.
 */
static void close_requests_have_lasting_holds(void **state)
{
    struct scene *scene = *state;

    atomic_store(&demand_of(scene)->frequent, clock_ns() + 3600 * NS_PER_SEC);
    assert_int_equal(count_holds(scene, 5 * HOLD_BURST), 5 * HOLD_BURST);
}

static void the_daemon_hears_of_holds_that_leave_no_time(void **state)
{
    struct scene *scene = *state;
    struct server *server = &scene->fixture->server;

    assert_false(context_hold_tell_demand(server));
    assert_false(context_hold_demand_is_news(server));
    atomic_store(&demand_of(scene)->full, clock_ns() + 3600 * NS_PER_SEC);
    assert_true(context_hold_demand_is_news(server));
    assert_true(context_hold_tell_demand(server));
    assert_false(context_hold_demand_is_news(server));
}

/* Requests at regular intervals: whether they are seen as close ones at the end. */
static bool is_high_after(uint64_t requests, uint64_t interval_ns)
{
    struct hold_demand demand = {0};
    uint64_t now = NS_PER_SEC;

    for (uint64_t i = 0; i < requests; i++, now += interval_ns)
        hold_demand_note(&demand, now);
    return hold_demand_is_high(&demand, now);
}

static void requests_are_close_or_not(void **state)
{
    (void)state;
    assert_false(is_high_after(5000, 600 * NS_PER_US));
    assert_true(is_high_after(5000, 400 * NS_PER_US));
    assert_true(is_high_after(5000, 20 * NS_PER_US));
    assert_false(is_high_after(HOLD_DEMAND_FREQUENT - 1, 20 * NS_PER_US));
}

/* The same, whether lasting holds would cover nearly all of the time. */
static bool is_full_after(uint64_t requests, uint64_t interval_ns)
{
    struct hold_demand demand = {0};
    uint64_t now = NS_PER_SEC;

    for (uint64_t i = 0; i < requests; i++, now += interval_ns)
        hold_demand_note(&demand, now);
    return hold_demand_is_full(&demand, now);
}

static void close_requests_leave_time_or_not(void **state)
{
    (void)state;
    assert_true(is_high_after(5000, 400 * NS_PER_US));
    assert_false(is_full_after(5000, 400 * NS_PER_US));
    assert_true(is_full_after(5000, 300 * NS_PER_US));
    assert_true(is_full_after(5000, 20 * NS_PER_US));
}

static void close_requests_count_for_some_time(void **state)
{
    struct hold_demand demand = {0};

    (void)state;
    for (unsigned i = 0; i < HOLD_DEMAND_FREQUENT; i++)
        hold_demand_note(&demand, NS_PER_SEC);
    assert_true(hold_demand_is_high(&demand, NS_PER_SEC + HOLD_DEMAND_STAYS_NS - 1));
    assert_false(hold_demand_is_high(&demand, NS_PER_SEC + HOLD_DEMAND_STAYS_NS));
    assert_true(hold_demand_is_high(&demand, NS_PER_SEC - 1));
}

static unsigned taken(struct hold_budget *budget, uint64_t from, uint64_t until, uint64_t step)
{
    unsigned count = 0;

    for (uint64_t now = from; now < until; now += step)
        count += hold_budget_take(budget, now);
    return count;
}

/* A client that waits for a kernel of 20 us all the time. */
static void a_closed_loop_gets_one_in_a_period(void **state)
{
    struct hold_budget budget = {0};

    (void)state;
    assert_int_equal(taken(&budget, 5, 5 + 1000 * HOLD_PERIOD_NS, 20 * NS_PER_US),
                     1000 + HOLD_BURST - 1);
}

static void a_rest_gives_no_more_than_a_burst(void **state)
{
    struct hold_budget budget = {0};

    (void)state;
    assert_int_equal(taken(&budget, 0, 1000, 1), HOLD_BURST);
    assert_int_equal(taken(&budget, NS_PER_SEC, NS_PER_SEC + 1000, 1), HOLD_BURST);
}

static void requests_that_are_rare_all_get_one(void **state)
{
    struct hold_budget budget = {0};

    (void)state;
    assert_int_equal(taken(&budget, 7, 7 + 100 * HOLD_PERIOD_NS, HOLD_PERIOD_NS), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CRITICAL_CASE(a_hold_begins_behind_the_fence),
        CRITICAL_CASE(a_hold_begins_behind_the_fence_of_a_command),
        CRITICAL_CASE(no_hold_begins_behind_a_copy),
        CRITICAL_CASE(a_hold_begins_once_for_a_fence),
        CRITICAL_CASE(no_hold_begins_before_more_work),
        CRITICAL_CASE(a_hold_needs_a_critical_client),
        CRITICAL_CASE(a_hold_needs_work_in_a_batch_lane),
        CRITICAL_CASE(a_hold_needs_a_request_that_is_not_done),
        CRITICAL_CASE(a_hold_waits_for_the_hold_before_it),
        CRITICAL_CASE(two_are_pending_at_most),
        CRITICAL_CASE(one_that_is_stuck_is_left),
        CRITICAL_CASE(none_begins_after_a_refusal),
        CRITICAL_CASE(a_device_without_the_kernel_has_none),
        CRITICAL_CASE(a_device_without_the_word_has_none),
        CRITICAL_CASE(lasting_ones_need_no_budget),
        CRITICAL_CASE(close_requests_have_lasting_holds),
        CRITICAL_CASE(the_daemon_hears_of_holds_that_leave_no_time),
        cmocka_unit_test(requests_are_close_or_not),
        cmocka_unit_test(close_requests_leave_time_or_not),
        cmocka_unit_test(close_requests_count_for_some_time),
        cmocka_unit_test(a_closed_loop_gets_one_in_a_period),
        cmocka_unit_test(a_rest_gives_no_more_than_a_burst),
        cmocka_unit_test(requests_that_are_rare_all_get_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
