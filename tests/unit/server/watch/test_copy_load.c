/* SPDX-License-Identifier: Apache-2.0 */
/* Clients are told how many of them copy much, when that ends, and whether to say that they wait.
 */
#include "copy_load.h"

#include "client_class.h"
#include "context_hold.h"
#include "copy.h"
#include "fake_driver.h"
#include "launch_record.h"
#include "launch_state.h"
#include "server_life.h"
#include "session_life.h"
#include "worker_pool.h"

#define MUCH (64ull << 20)
#define THREADS_OF_A_CLIENT 2u /* its own and that of its session */

static void copy(struct fixture *fixture, uint64_t bytes)
{
    copy_count(fixture->session, COPY_UP, bytes);
}

static uint32_t told(const struct fixture *fixture)
{
    return fixture->session->channel->region->copiers;
}

static int setup(void **state)
{
    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    fixture->server.life->cpus = 16;
    list_append(&fixture->server.sessions, &fixture->session->link);
    return 0;
}

static void clients_that_copy_much_count(void **state)
{
    copy(*state, MUCH);
    copy_load_update(&((struct fixture *)*state)->server);
    assert_int_equal(told(*state), 1);
}

static void clients_that_stop_do_not_count(void **state)
{
    struct fixture *fixture = *state;

    copy(fixture, MUCH);
    copy_load_update(&fixture->server);
    copy_load_update(&fixture->server);
    assert_int_equal(told(fixture), 0);
}

static void clients_that_copy_little_do_not_count(void **state)
{
    copy(*state, 4096);
    copy_load_update(&((struct fixture *)*state)->server);
    assert_int_equal(told(*state), 0);
}

static bool says_that_it_waits(struct fixture *fixture, unsigned class, enum hold_kind kind)
{
    fixture->session->limits.class = class;
    context_hold_allow(&fixture->server, kind);
    copy_load_update(&fixture->server);
    return fixture->session->channel->region->hold_wanted;
}

static void critical_clients_say_that_they_wait_while_there_are_holds(void **state)
{
    assert_false(says_that_it_waits(*state, CLASS_CRITICAL, HOLD_NONE));
    assert_true(says_that_it_waits(*state, CLASS_CRITICAL, HOLD_BRIEF));
    assert_true(says_that_it_waits(*state, CLASS_CRITICAL, HOLD_LASTING));
    assert_false(says_that_it_waits(*state, CLASS_NORMAL, HOLD_LASTING));
    assert_true(says_that_it_waits(*state, CLASS_CRITICAL, HOLD_BRIEF));
    assert_false(says_that_it_waits(*state, CLASS_CRITICAL, HOLD_NONE));
}

static uint32_t spin_of(const struct fixture *fixture)
{
    return fixture->session->channel->region->spin_ns;
}

static void launch(struct fixture *fixture)
{
    launch_record(fixture->session, 1, 0, "kernel");
    copy_load_update(&fixture->server);
}

static void more_clients_than_cpus(void **state)
{
    struct fixture *fixture = *state;

    launch(fixture);
    assert_int_equal(spin_of(fixture), 0);
    fixture->server.life->cpus = 0;
    launch(fixture);
    assert_int_equal(spin_of(fixture), 2000);
    for (int looks = 1; looks < 10; looks++)
        copy_load_update(&fixture->server);
    assert_int_equal(spin_of(fixture), 2000);
    copy_load_update(&fixture->server);
    assert_int_equal(spin_of(fixture), 0);
}

/* The pool leaves the CPU to the client's thread, unless a worker needs it. */
static void as_many_clients_as_cpus(void **state)
{
    struct fixture *fixture = *state;

    fixture->server.life->cpus = 1;
    launch(fixture);
    assert_int_equal(spin_of(fixture), 2000);
    assert_int_equal(worker_pool_start(&fixture->server, (struct pool_size){1, 1}), 0);
    launch(fixture);
    assert_int_equal(spin_of(fixture), 10000);
}

/* A pool that fills all CPUs with its clients' threads leaves them their spins. */
static void the_pool_serves_where_threads_fill_all_cpus(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(worker_pool_start(&fixture->server, (struct pool_size){1, 1}), 0);
    fixture->server.life->cpus = THREADS_OF_A_CLIENT + 1;
    launch(fixture);
    assert_false(worker_pool_is_wanted(&fixture->server));
    fixture->server.life->cpus = THREADS_OF_A_CLIENT;
    launch(fixture);
    assert_true(worker_pool_is_wanted(&fixture->server));
    assert_int_equal(spin_of(fixture), 0);
    fixture->server.life->cpus = THREADS_OF_A_CLIENT - 1;
    launch(fixture);
    assert_true(worker_pool_is_wanted(&fixture->server));
}

#define RESTING 15u

/* With a thread of each of them there would be more than CPUs. */
static void programs_that_rest_count_for_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct session *others[RESTING];

    assert_int_equal(worker_pool_start(&fixture->server, (struct pool_size){1, 1}), 0);
    for (uint32_t i = 0; i < RESTING; i++) {
        const struct server_client who = {.identity.pid = 4711 + (int32_t)i};

        others[i] = session_create(&fixture->server, &who, 2 + i);
        list_append(&fixture->server.sessions, &others[i]->link);
    }
    launch(fixture);
    assert_int_equal(spin_of(fixture), 0);
    assert_false(worker_pool_is_wanted(&fixture->server));
    for (unsigned i = 0; i < RESTING; i++) {
        list_remove(&others[i]->link);
        session_destroy(others[i]);
    }
}

static void launch_alone(struct fixture *fixture, unsigned lone, unsigned all)
{
    atomic_fetch_add(&fixture->session->launch->lone, lone);
    launch_record(fixture->session, all, 0, "kernel");
    copy_load_update(&fixture->server);
}

static void a_program_that_computes_between_launches_is_not_pooled(void **state)
{
    struct fixture *fixture = *state;

    launch_alone(fixture, 40, 100);
    assert_false(fixture->session->unpooled);
    launch_alone(fixture, 60, 100);
    assert_true(fixture->session->unpooled);
    launch_alone(fixture, 0, 0);
    assert_true(fixture->session->unpooled);
    launch_alone(fixture, 40, 100);
    assert_true(fixture->session->unpooled);
    launch_alone(fixture, 20, 100);
    assert_false(fixture->session->unpooled);
}

static uint32_t yield_of(const struct fixture *fixture)
{
    return fixture->session->channel->region->yield_ns;
}

/* A hundred launches, so many of them alone, beside one that makes others in the same time. */
static void work_beside(struct fixture *fixture, unsigned lone, struct launch_counts others)
{
    const struct server_client who = {.identity.pid = 4711};
    struct session *other = session_create(&fixture->server, &who, 2);

    list_append(&fixture->server.sessions, &other->link);
    launch_record(other, (unsigned)others.launches, 0, "kernel");
    atomic_fetch_add(&other->launch->lone, others.lone);
    launch_alone(fixture, lone, 100);
    list_remove(&other->link);
    session_destroy(other);
}

static void train_beside(struct fixture *fixture, unsigned lone, unsigned launches)
{
    work_beside(fixture, lone, (struct launch_counts){.launches = launches, .lone = launches / 4});
}

static void a_training_yields_unless_it_is_ahead(void **state)
{
    struct fixture *fixture = *state;

    fixture->server.life->cpus = 2;
    assert_int_equal(worker_pool_start(&fixture->server, (struct pool_size){1, 1}), 0);
    train_beside(fixture, 60, 1000);
    assert_int_equal(yield_of(fixture), 1000000);
    assert_true(fixture->session->gathers);
    assert_false(fixture->session->unpooled);
    train_beside(fixture, 60, 190); /* a little ahead */
    assert_int_equal(yield_of(fixture), 1000000);
    train_beside(fixture, 25, 10);
    assert_int_equal(yield_of(fixture), 0);
}

static void trainings_sleep_where_not_each_has_a_cpu(void **state)
{
    struct fixture *fixture = *state;

    fixture->server.life->cpus = 1;
    assert_int_equal(worker_pool_start(&fixture->server, (struct pool_size){1, 1}), 0);
    train_beside(fixture, 60, 1000);
    assert_int_equal(yield_of(fixture), 0);
    assert_int_equal(spin_of(fixture), 2000);
    assert_false(fixture->session->unpooled);
    work_beside(fixture, 60, (struct launch_counts){.launches = 1000}); /* no training */
    assert_true(fixture->session->unpooled);
}

static void trainings_sleep_where_no_pool_is(void **state)
{
    struct fixture *fixture = *state;

    fixture->server.life->cpus = 2;
    train_beside(fixture, 25, 1000);
    assert_int_equal(yield_of(fixture), 0);
}

/* As long as there are CPUs for the threads of the server as well. */
static void trainings_spin_where_there_are_cpus(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(worker_pool_start(&fixture->server, (struct pool_size){1, 1}), 0);
    train_beside(fixture, 25, 1000);
    assert_int_equal(yield_of(fixture), 0);
    assert_false(fixture->session->gathers);
    assert_int_equal(spin_of(fixture), 0);
}

static void switched_off(void **state)
{
    struct fixture *fixture = *state;

    fixture->server.life->cpus = 0;
    fixture->server.life->no_copy_load = fixture->server.life->no_short_spin = true;
    copy(fixture, MUCH);
    launch(fixture);
    assert_int_equal(told(fixture), 0);
    assert_int_equal(spin_of(fixture), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clients_that_copy_much_count, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(clients_that_stop_do_not_count, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(clients_that_copy_little_do_not_count, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(critical_clients_say_that_they_wait_while_there_are_holds,
                                        setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(more_clients_than_cpus, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(as_many_clients_as_cpus, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_program_that_computes_between_launches_is_not_pooled,
                                        setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_training_yields_unless_it_is_ahead, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(trainings_sleep_where_not_each_has_a_cpu, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(trainings_sleep_where_no_pool_is, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(trainings_spin_where_there_are_cpus, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_pool_serves_where_threads_fill_all_cpus, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(programs_that_rest_count_for_nothing, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(switched_off, setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
