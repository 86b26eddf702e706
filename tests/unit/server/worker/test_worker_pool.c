/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that its own thread and a worker of the pool serve in turn. Every command is made once
 * and in order, and what may block is made by the session's own thread.
 */
#include "channel_server.h"
#include "worker_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capacity.h"
#include "fake_driver.h"
#include "launch_state.h"
#include "session_life.h"
#include "sock.h"
#include "stream_state.h"
#include "suspend.h"
#include "worker.h"

#define LAUNCHES 3000u
#define CLIENTS 3u

/* What the driver has seen of one client. One thread at a time writes it. */
struct seen {
    _Atomic uint64_t launches;
    bool out_of_order;
    pthread_t session_thread;
    unsigned by_session_thread;
};

static struct seen seen[CLIENTS];

/* While it is closed, the driver does not return from a launch. */
static atomic_bool gate_is_closed;

/* By how many launches one client was ahead of another, at most. */
static _Atomic uint64_t largest_lead;
static atomic_uint events_elsewhere;

static void note_lead(uint64_t launches)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        uint64_t other = atomic_load(&seen[i].launches);
        if (launches > other && launches - other > atomic_load(&largest_lead))
            atomic_store(&largest_lead, launches - other);
    }
}

/* A launch has one parameter: the client's number, and how many it has made before. */
#define PARAMETER(client, number) ((uint64_t)(client) << 32 | (number))

static CUresult note_launch(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    uint64_t parameter;

    memcpy(&parameter, extra[1], sizeof(parameter));
    struct seen *client = &seen[parameter >> 32];
    uint64_t launches = atomic_load(&client->launches);
    client->out_of_order |= (uint32_t)parameter != launches;
    client->by_session_thread += pthread_equal(pthread_self(), client->session_thread) != 0;
    while (atomic_load(&gate_is_closed))
        usleep(100);
    note_lead(launches + 1);
    atomic_store(&client->launches, launches + 1);
    return CUDA_SUCCESS;
}

static bool is_session_thread(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (pthread_equal(pthread_self(), seen[i].session_thread))
            return true;
    }
    return false;
}

static CUresult note_event(CUevent *ret_event, unsigned flags)
{
    if (!is_session_thread())
        atomic_fetch_add(&events_elsewhere, 1);
    *ret_event = (CUevent)(uintptr_t)1;
    return CUDA_SUCCESS;
}

/* A client and its session, with a stream and a function. */
struct client {
    unsigned number;
    struct session *session;
    struct function *function;
    struct channel channel;
    int ends[2];
    pthread_t thread;
    bool ended;
};

struct scene {
    struct fixture *fixture;
    struct module module;
    struct known_kernel known;
    struct client clients[CLIENTS];
};

static void *run_session(void *context)
{
    struct client *client = context;

    seen[client->number].session_thread = pthread_self();
    worker_run(client->session);
    return NULL;
}

static void make_function(struct scene *scene, struct client *client)
{
    client->function = calloc(1, sizeof(*client->function) + 8);
    scene->module.device = &scene->fixture->server.devices.device[0];
    client->function->module = &scene->module;
    client->function->known = &scene->known;
    client->function->driver = (CUfunction)1;
    client->function->params_size = 8;
    assert_int_equal(session_put(client->session, WIRE_FUNCTION, fixture_handle(WIRE_FUNCTION, 2),
                                 client->function),
                     CUDA_SUCCESS);
}

static void make_stream(struct scene *scene, struct client *client)
{
    struct session *first = scene->fixture->session;

    scene->fixture->session = client->session;
    fixture_stream(scene->fixture, 1, CU_STREAM_NON_BLOCKING);
    scene->fixture->session = first;
}

/* The first client's session is the fixture's. */
static void make_session(struct scene *scene, struct client *client)
{
    const struct server_client who = {.identity.pid = 4711 + client->number};

    if (!client->number) {
        client->session = scene->fixture->session;
        return;
    }
    client->session = session_create(&scene->fixture->server, &who, 1 + client->number);
    client->session->window = &scene->fixture->window;
    assert_int_equal(channel_server_create(&client->session->channel), 0);
}

static void open_client(struct scene *scene, unsigned number)
{
    struct client *client = &scene->clients[number];

    client->number = number;
    make_session(scene, client);
    make_stream(scene, client);
    make_function(scene, client);
    assert_int_equal(sock_pair(client->ends), 0);
    assert_int_equal(channel_open(&client->channel, channel_server_fd(client->session->channel),
                                  REGION_SIZE, REGION_RING_BYTES, client->ends[0]),
                     0);
    list_append(&scene->fixture->server.sessions, &client->session->link);
}

/* As the watchdog does. */
static void set_wanted(struct scene *scene, bool wanted)
{
    worker_pool_update_locked(&scene->fixture->server, (struct pool_demand){.wanted = wanted});
}

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    void *fixture;

    assert_int_equal(fixture_setup(&fixture), 0);
    scene->fixture = fixture;
    memset(seen, 0, sizeof(seen));
    atomic_store(&events_elsewhere, 0);
    atomic_store(&largest_lead, 0);
    driver.cuLaunchKernelEx = note_launch;
    driver.cuEventCreate = note_event;
    driver.cuGraphCreate = NULL; /* each launch by itself */
    for (unsigned i = 0; i < CLIENTS; i++)
        open_client(scene, i);
    assert_int_equal(worker_pool_start(&scene->fixture->server, (struct pool_size){1, 2}), 0);
    set_wanted(scene, true);
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_int_equal(
            pthread_create(&scene->clients[i].thread, NULL, run_session, &scene->clients[i]), 0);
    *state = scene;
    return 0;
}

/* What its thread has seen can be read then. */
static void end_session(struct client *client)
{
    if (client->ended)
        return;
    client->ended = true;
    client->session->stop = true;
    session_kick(client->session);
    pthread_join(client->thread, NULL);
}

static void drop_stream(struct client *client)
{
    struct stream *stream =
        session_lookup(client->session, WIRE_STREAM, fixture_handle(WIRE_STREAM, 1));

    list_remove(&stream->link);
    stream_close(stream);
    stream_destroy(stream);
}

static void close_client(struct client *client)
{
    list_remove(&client->session->link);
    session_remove(client->session, WIRE_FUNCTION, fixture_handle(WIRE_FUNCTION, 2));
    channel_close(&client->channel);
    close(client->ends[0]);
    close(client->ends[1]);
    free(client->function);
    if (!client->number)
        return;
    drop_stream(client);
    client->session->window = NULL;
    session_destroy(client->session);
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    void *fixture = scene->fixture;

    for (unsigned i = 0; i < CLIENTS; i++)
        end_session(&scene->clients[i]);
    for (unsigned i = 0; i < CLIENTS; i++)
        close_client(&scene->clients[i]);
    int error = fixture_teardown(&fixture);
    free(scene);
    return error;
}

static void launch(struct client *client, uint32_t number)
{
    const uint64_t parameter = PARAMETER(client->number, number);
    const struct wire_cuLaunchKernelEx in = {.f = fixture_handle(WIRE_FUNCTION, 2),
                                             .hStream = fixture_handle(WIRE_STREAM, 1),
                                             .shape = {1},
                                             .params_size = sizeof(parameter)};
    void *place;

    channel_lock(&client->channel);
    assert_int_equal(wire_cuLaunchKernelEx(&client->channel, &in, &place), CUDA_SUCCESS);
    memcpy(place, &parameter, sizeof(parameter));
    channel_commit(&client->channel);
    channel_unlock(&client->channel);
}

static void fence(struct client *client, uint32_t seq)
{
    const struct wire_fnFence in = {.hStream = fixture_handle(WIRE_STREAM, 1), .seq = seq};

    assert_int_equal(wire_fnFence(&client->channel, &in), CUDA_SUCCESS);
}

/* Commands that a worker does not make. */
static void create_and_destroy_event(struct client *client)
{
    const struct wire_cuEventCreate in = {.hEvent = fixture_handle(WIRE_EVENT, 3)};
    const struct wire_cuEventDestroy_v2 end = {.hEvent = in.hEvent};

    assert_int_equal(wire_cuEventCreate(&client->channel, &in), CUDA_SUCCESS);
    assert_int_equal(wire_cuEventDestroy_v2(&client->channel, &end), CUDA_SUCCESS);
}

static void await_launches(const struct client *client, uint64_t count)
{
    while (atomic_load(&seen[client->number].launches) < count)
        usleep(100);
}

static void await_rest(const struct session *session)
{
    while (!session_is_at_rest(session))
        usleep(100);
}

static void commands_are_made_once_and_in_order(void **state)
{
    struct client *client = &((struct scene *)*state)->clients[0];

    for (uint32_t i = 0; i < LAUNCHES; i++) {
        launch(client, i);
        if (i % 5 == 4)
            fence(client, i);
        if (i % 100 == 50)
            create_and_destroy_event(client);
    }
    await_launches(client, LAUNCHES);
    end_session(client);
    assert_false(seen[0].out_of_order);
    assert_true(seen[0].by_session_thread < LAUNCHES);
    assert_int_equal(events_elsewhere, 0);
}

/* It sleeps on its ring, and its thread is woken by the next command. */
static void a_session_that_rests_is_not_forgotten(void **state)
{
    struct client *client = &((struct scene *)*state)->clients[0];

    for (uint32_t i = 0; i < 20; i++) {
        launch(client, i);
        fence(client, i + 1);
        await_launches(client, i + 1);
        usleep(1000);
        await_rest(client->session);
    }
}

static void a_suspended_session_makes_nothing(void **state)
{
    struct client *client = &((struct scene *)*state)->clients[0];
    struct session *session = client->session;

    launch(client, 0);
    await_launches(client, 1);
    session->suspended.until = UINT64_MAX;
    atomic_fetch_add(&session->suspended.count, 1);
    await_rest(session);
    launch(client, 1);
    usleep(10000);
    assert_int_equal(atomic_load(&seen[0].launches), 1);
    atomic_fetch_sub(&session->suspended.count, 1);
    await_launches(client, 2);
}

/* Without capacity for graphs, so that each is seen. */
static void gather_launches(struct scene *scene)
{
    while (capacity_take(&scene->fixture->server.devices.device[0], 1))
        ;
    atomic_store(&scene->clients[0].session->gathers, true);
}

/* A fence, a pause, a suspension or the end of the session ends a row. */
static void gathered_launches_are_made_once_and_in_order(void **state)
{
    struct client *client = &((struct scene *)*state)->clients[0];
    struct session *session = client->session;
    uint32_t made = 0;

    gather_launches(*state);
    set_wanted(*state, true);
    for (uint32_t row = 0; row < 30; row++) {
        for (uint32_t i = 0; i < 21; i++)
            launch(client, made++);
        if (row % 3 == 0)
            fence(client, row + 1);
        if (row % 3 == 1)
            await_launches(client, made);
        if (row % 3 == 2) {
            session->suspended.until = UINT64_MAX;
            atomic_fetch_add(&session->suspended.count, 1);
            await_rest(session);
            atomic_fetch_sub(&session->suspended.count, 1);
        }
    }
    await_launches(client, made);
    end_session(client);
    assert_false(seen[0].out_of_order);
    assert_int_equal(seen[0].launches, made);
}

/* A program with an endless queue is served by its own thread again when CPUs are not short. */
static void the_pool_can_be_left_and_entered(void **state)
{
    struct scene *scene = *state;
    struct client *client = &scene->clients[0];

    for (uint32_t i = 0; i < LAUNCHES; i++) {
        launch(client, i);
        set_wanted(scene, i % 64 < 32);
    }
    await_launches(client, LAUNCHES);
    end_session(client);
    assert_false(seen[0].out_of_order);
}

static void an_exempt_session_is_served_by_its_thread(void **state)
{
    struct client *client = &((struct scene *)*state)->clients[0];

    worker_pool_exempt_locked(client->session, true);
    await_rest(client->session);
    for (uint32_t i = 0; i < LAUNCHES; i++)
        launch(client, i);
    await_launches(client, LAUNCHES);
    worker_pool_exempt_locked(client->session, false);
    end_session(client);
    /* A worker that had the session has made one burst at most. */
    assert_true(seen[0].by_session_thread >= LAUNCHES - 16);
}

/* Returns how many launches each client has made. */
static uint32_t launch_until_active(struct scene *scene, uint32_t from, unsigned workers)
{
    uint32_t i = from;

    while (worker_pool_active(&scene->fixture->server) != workers || i - from < 100) {
        for (unsigned c = 0; c < CLIENTS; c++)
            launch(&scene->clients[c], i);
        i++;
        set_wanted(scene, true);
    }
    return i;
}

static void pause_until_active(struct scene *scene, unsigned workers)
{
    while (worker_pool_active(&scene->fixture->server) != workers) {
        usleep(1000);
        set_wanted(scene, true);
    }
}

/* Endless queues want both workers, and pauses one, so that sessions move. */
static void sessions_move_between_workers(void **state)
{
    struct scene *scene = *state;
    uint32_t made = 0;

    for (unsigned round = 0; round < 10; round++) {
        made = launch_until_active(scene, made, 2);
        for (unsigned c = 0; c < CLIENTS; c++)
            await_launches(&scene->clients[c], made);
        pause_until_active(scene, 1);
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        end_session(&scene->clients[c]);
        assert_false(seen[c].out_of_order);
        assert_int_equal(seen[c].launches, made);
    }
}

/* The worker stands in the first launch until all sessions have come. */
static void commands_are_made_by_workers_that_sleep(void **state)
{
    struct scene *scene = *state;

    worker_pool_update_locked(&scene->fixture->server,
                              (struct pool_demand){.wanted = true, .sleeps = true});
    for (uint32_t i = 0; i < LAUNCHES / 10; i++)
        for (unsigned c = 0; c < CLIENTS; c++)
            launch(&scene->clients[c], i);
    for (unsigned c = 0; c < CLIENTS; c++)
        await_launches(&scene->clients[c], LAUNCHES / 10);
}

static void sessions_with_long_queues_get_equal_shares(void **state)
{
    struct scene *scene = *state;

    atomic_store(&gate_is_closed, true);
    for (unsigned c = 0; c < CLIENTS; c++) {
        for (uint32_t i = 0; i < LAUNCHES; i++)
            launch(&scene->clients[c], i);
        usleep(50000);
    }
    atomic_store(&gate_is_closed, false);
    for (unsigned c = 0; c < CLIENTS; c++)
        await_launches(&scene->clients[c], LAUNCHES);
    /* In each round a client is a burst of 16 ahead. A session that comes late misses some. */
    assert_in_range(largest_lead, 1, LAUNCHES / 10);
}

static void workers_follow_cpus_and_load(void **state)
{
    const struct pool_size pod = pool_size_for(4, 1), node = pool_size_for(16, 1),
                           large = pool_size_for(128, 8);

    assert_int_equal(pool_size_for(3, 1).most, 0);
    assert_int_equal(pod.least, 1);
    assert_int_equal(pod.most, 1);
    assert_int_equal(node.least, 2);
    assert_int_equal(node.most, 4);
    assert_int_equal(large.least, 16);
    assert_int_equal(large.most, 32);
    assert_int_equal(pool_size_for(128, 1).most, 4);
    assert_int_equal(pool_size_adapt(&node, 2, (struct pool_time){1000, 900}, false), 4);
    assert_int_equal(pool_size_adapt(&node, 4, (struct pool_time){1000, 300}, false), 4);
    assert_int_equal(pool_size_adapt(&node, 2, (struct pool_time){1000, 700}, false), 2);
    assert_int_equal(pool_size_adapt(&node, 4, (struct pool_time){1000, 10}, false), 2);
    assert_int_equal(pool_size_adapt(&node, 4, (struct pool_time){0, 0}, false), 2);
}

static void trainings_have_fewer_workers(void **state)
{
    const struct pool_size pod = pool_size_for(4, 1), node = pool_size_for(16, 1);

    assert_int_equal(pool_size_adapt(&node, 2, (struct pool_time){1000, 900}, true), 3);
    assert_int_equal(pool_size_adapt(&node, 4, (struct pool_time){1000, 600}, true), 3);
    assert_int_equal(pool_size_adapt(&node, 3, (struct pool_time){1000, 10}, true), 2);
    assert_int_equal(pool_size_adapt(&node, 1, (struct pool_time){1000, 600}, false), 2);
    assert_int_equal(pool_size_few(&node), 1);
    assert_int_equal(pool_size_few(&pod), 1);
    assert_int_equal(pool_size_adapt_gathering(&node, 1, (struct pool_time){1000, 900}), 1);
    assert_int_equal(pool_size_adapt_gathering(&node, 1, (struct pool_time){1000, 950}), 3);
    assert_int_equal(pool_size_adapt_gathering(&node, 3, (struct pool_time){1000, 10}), 3);
    assert_int_equal(pool_size_adapt_gathering(&pod, 1, (struct pool_time){1000, 950}), 1);
    assert_int_equal(pool_size_adapt(&pod, 1, (struct pool_time){1000, 900}, true), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_are_made_once_and_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_that_rests_is_not_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(a_suspended_session_makes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(gathered_launches_are_made_once_and_in_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_pool_can_be_left_and_entered, setup, teardown),
        cmocka_unit_test_setup_teardown(an_exempt_session_is_served_by_its_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(sessions_move_between_workers, setup, teardown),
        cmocka_unit_test_setup_teardown(sessions_with_long_queues_get_equal_shares, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(commands_are_made_by_workers_that_sleep, setup, teardown),
        cmocka_unit_test(workers_follow_cpus_and_load),
        cmocka_unit_test(trainings_have_fewer_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
