/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that its own thread and a worker of the pool serve in turn: every command is made once
 * and in order, and what may block is made by the session's own thread.
 */
#include "worker_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"
#include "session_life.h"
#include "sock.h"
#include "stream_state.h"
#include "worker.h"

#define LAUNCHES 3000u

/* What the driver has seen. One thread at a time writes it. */
static struct {
    uint64_t launches;
    bool out_of_order;
    pthread_t session_thread;
    unsigned by_session_thread, events_elsewhere;
} seen;

static _Atomic uint64_t launched;

static CUresult note_launch(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    uint64_t number;

    memcpy(&number, extra[1], sizeof(number));
    seen.out_of_order |= number != seen.launches;
    seen.launches++;
    seen.by_session_thread += pthread_equal(pthread_self(), seen.session_thread) != 0;
    atomic_store(&launched, seen.launches);
    return CUDA_SUCCESS;
}

static CUresult note_event(CUevent *ret_event, unsigned flags)
{
    seen.events_elsewhere += !pthread_equal(pthread_self(), seen.session_thread);
    *ret_event = (CUevent)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static void *run_session(void *session)
{
    seen.session_thread = pthread_self();
    worker_run(session);
    return NULL;
}

/* A server with one worker, a session with a stream and a function, and the session's client. */
struct scene {
    struct fixture *fixture;
    struct module module;
    struct known_kernel known;
    struct function *function;
    struct channel client;
    int ends[2];
    pthread_t thread;
    bool ended;
};

static void make_function(struct scene *scene)
{
    scene->function = calloc(1, sizeof(*scene->function) + 8);
    scene->module.device = &scene->fixture->server.devices.device[0];
    scene->function->module = &scene->module;
    scene->function->known = &scene->known;
    scene->function->driver = (CUfunction)1;
    scene->function->params_size = 8;
    assert_int_equal(session_put(scene->fixture->session, WIRE_FUNCTION,
                                 fixture_handle(WIRE_FUNCTION, 2), scene->function),
                     CUDA_SUCCESS);
}

static void open_client(struct scene *scene)
{
    assert_int_equal(sock_pair(scene->ends), 0);
    assert_int_equal(channel_open(&scene->client,
                                  channel_server_fd(scene->fixture->session->channel), REGION_SIZE,
                                  REGION_RING_BYTES, scene->ends[0]),
                     0);
}

/* The session is in no list. */
static void set_wanted(struct scene *scene, bool wanted)
{
    worker_pool_set_wanted_locked(&scene->fixture->server, wanted);
    if (wanted)
        atomic_fetch_or(&scene->fixture->session->limits.changed, CHANGED_SERVICE);
}

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    void *fixture;

    assert_int_equal(fixture_setup(&fixture), 0);
    scene->fixture = fixture;
    memset(&seen, 0, sizeof(seen));
    atomic_store(&launched, 0);
    driver.cuLaunchKernelEx = note_launch;
    driver.cuEventCreate = note_event;
    driver.cuGraphCreate = NULL; /* each launch by itself */
    fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    make_function(scene);
    open_client(scene);
    assert_int_equal(worker_pool_start(&scene->fixture->server, 1), 0);
    set_wanted(scene, true);
    assert_int_equal(pthread_create(&scene->thread, NULL, run_session, scene->fixture->session), 0);
    *state = scene;
    return 0;
}

/* What its thread has seen can be read then. */
static void end_session(struct scene *scene)
{
    if (scene->ended)
        return;
    scene->ended = true;
    scene->fixture->session->stop = true;
    session_kick(scene->fixture->session);
    pthread_join(scene->thread, NULL);
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    void *fixture = scene->fixture;

    end_session(scene);
    session_remove(scene->fixture->session, WIRE_FUNCTION, fixture_handle(WIRE_FUNCTION, 2));
    channel_close(&scene->client);
    close(scene->ends[0]);
    close(scene->ends[1]);
    int error = fixture_teardown(&fixture);
    free(scene->function);
    free(scene);
    return error;
}

static void launch(struct scene *scene, uint64_t number)
{
    const struct wire_cuLaunchKernelEx in = {.f = fixture_handle(WIRE_FUNCTION, 2),
                                             .hStream = fixture_handle(WIRE_STREAM, 1),
                                             .shape = {1},
                                             .params_size = sizeof(number)};
    void *place;

    channel_lock(&scene->client);
    assert_int_equal(wire_cuLaunchKernelEx(&scene->client, &in, &place), CUDA_SUCCESS);
    memcpy(place, &number, sizeof(number));
    channel_commit(&scene->client);
    channel_unlock(&scene->client);
}

static void fence(struct scene *scene, uint32_t seq)
{
    const struct wire_fnFence in = {.hStream = fixture_handle(WIRE_STREAM, 1), .seq = seq};

    assert_int_equal(wire_fnFence(&scene->client, &in), CUDA_SUCCESS);
}

/* Commands that a worker does not make. */
static void create_and_destroy_event(struct scene *scene)
{
    const struct wire_cuEventCreate in = {.hEvent = fixture_handle(WIRE_EVENT, 3)};
    const struct wire_cuEventDestroy_v2 end = {.hEvent = in.hEvent};

    assert_int_equal(wire_cuEventCreate(&scene->client, &in), CUDA_SUCCESS);
    assert_int_equal(wire_cuEventDestroy_v2(&scene->client, &end), CUDA_SUCCESS);
}

static void await_launches(uint64_t count)
{
    while (atomic_load(&launched) < count)
        usleep(100);
}

static void await_rest(const struct session *session)
{
    while (!session_is_at_rest(session))
        usleep(100);
}

static void commands_are_made_once_and_in_order(void **state)
{
    struct scene *scene = *state;

    for (uint64_t i = 0; i < LAUNCHES; i++) {
        launch(scene, i);
        if (i % 5 == 4)
            fence(scene, (uint32_t)i);
        if (i % 100 == 50)
            create_and_destroy_event(scene);
    }
    await_launches(LAUNCHES);
    end_session(scene);
    assert_false(seen.out_of_order);
    assert_true(seen.by_session_thread < LAUNCHES);
    assert_int_equal(seen.events_elsewhere, 0);
}

/* It sleeps on its ring, and its thread is woken by the next command. */
static void a_session_that_rests_is_not_forgotten(void **state)
{
    struct scene *scene = *state;

    for (uint64_t i = 0; i < 20; i++) {
        launch(scene, i);
        fence(scene, (uint32_t)i + 1);
        await_launches(i + 1);
        usleep(1000);
        await_rest(scene->fixture->session);
    }
}

static void a_suspended_session_makes_nothing(void **state)
{
    struct scene *scene = *state;
    struct session *session = scene->fixture->session;

    launch(scene, 0);
    await_launches(1);
    session->suspended.until = UINT64_MAX;
    atomic_fetch_add(&session->suspended.count, 1);
    await_rest(session);
    launch(scene, 1);
    usleep(10000);
    assert_int_equal(atomic_load(&launched), 1);
    atomic_fetch_sub(&session->suspended.count, 1);
    await_launches(2);
}

/* A program with an endless queue is served by its own thread again when CPUs are not short. */
static void the_pool_can_be_left_and_entered(void **state)
{
    struct scene *scene = *state;

    for (uint64_t i = 0; i < LAUNCHES; i++) {
        launch(scene, i);
        set_wanted(scene, i % 64 < 32);
    }
    await_launches(LAUNCHES);
    end_session(scene);
    assert_false(seen.out_of_order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_are_made_once_and_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_that_rests_is_not_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(a_suspended_session_makes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(the_pool_can_be_left_and_entered, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
