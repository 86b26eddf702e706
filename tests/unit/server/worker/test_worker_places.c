/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions change places among workers that differ, and all get as many turns. */
#include "worker_places.h"

#include "clock.h"
#include "unit.h"

#define WORKERS 4u
#define SESSIONS_MAX 64u
#define LOOK_NS (20 * NS_PER_MS)
#define LOOKS 20u

struct session {
    uint64_t turns;
    unsigned worker;
};

struct scene {
    uint64_t turns_of_look[WORKERS]; /* of a worker */
    struct pool_turns recent[WORKERS];
    struct session sessions[SESSIONS_MAX];
    unsigned count;
    unsigned moved;
};

static unsigned sessions_of(const struct scene *scene, unsigned worker)
{
    unsigned count = 0;

    for (unsigned i = 0; i < scene->count; i++)
        count += scene->sessions[i].worker == worker;
    return count;
}

/* Their sessions always have commands. */
static void work(struct scene *scene)
{
    for (unsigned i = 0; i < WORKERS; i++)
        pool_turns_add(&scene->recent[i], (struct pool_turns){LOOK_NS, scene->turns_of_look[i]});
    for (unsigned i = 0; i < scene->count; i++) {
        struct session *session = &scene->sessions[i];

        session->turns +=
            scene->turns_of_look[session->worker] / sessions_of(scene, session->worker);
    }
}

static void change_places(struct scene *scene)
{
    struct pool_room rooms[WORKERS];
    struct worker_place places[SESSIONS_MAX];

    for (unsigned i = 0; i < scene->count; i++) {
        struct session *session = &scene->sessions[i];

        places[i] = (struct worker_place){session, session->turns, session->worker};
    }
    if (!worker_places_differ(places, scene->count))
        return;
    pool_share(scene->recent, WORKERS, scene->count, rooms);
    worker_places_assign(places, scene->count, rooms, WORKERS);
    for (unsigned i = 0; i < scene->count; i++) {
        struct session *session = places[i].session;

        scene->moved += session->worker != places[i].worker;
        session->worker = places[i].worker;
    }
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(sessions_of(scene, i), rooms[i].share);
}

/* Of an equal share. */
static double least_share(const struct scene *scene)
{
    double sum = 0, least = 1e18;

    for (unsigned i = 0; i < scene->count; i++) {
        double turns = (double)scene->sessions[i].turns;

        sum += turns;
        least = turns < least ? turns : least;
    }
    return least * scene->count / sum;
}

static void begin(struct scene *scene, unsigned sessions)
{
    scene->count = sessions;
    for (unsigned i = 0; i < sessions; i++)
        scene->sessions[i].worker = i % WORKERS;
}

static void expect_equal_turns(struct scene *scene, unsigned sessions)
{
    begin(scene, sessions);
    for (unsigned look = 0; look < LOOKS; look++) {
        work(scene);
        change_places(scene);
    }
    assert_true(least_share(scene) > 0.97);
    assert_true(scene->moved > 0);
}

static void sessions_of_slow_workers_change_places(void **state)
{
    for (unsigned sessions = WORKERS; sessions <= SESSIONS_MAX; sessions *= 2) {
        struct scene scene = {.turns_of_look = {17000, 18000, 19000, 20000}};

        expect_equal_turns(&scene, sessions);
    }
}

static void nine_sessions_have_four_workers(void **state)
{
    struct scene scene = {.turns_of_look = {20000, 20000, 20000, 20000}};

    expect_equal_turns(&scene, 9);
}

static void sessions_of_equal_workers_stay(void **state)
{
    struct scene scene = {.turns_of_look = {20000, 20100, 19900, 20000}};

    begin(&scene, 8);
    for (unsigned look = 0; look < LOOKS; look++) {
        work(&scene);
        change_places(&scene);
    }
    assert_int_equal(scene.moved, 0);
}

static void fewer_sessions_than_workers_have_a_worker_each(void **state)
{
    struct scene scene = {.turns_of_look = {20000, 20000, 10000, 20000}};

    begin(&scene, 3);
    scene.sessions[0].turns = 1000;
    change_places(&scene);
    assert_int_equal(sessions_of(&scene, 0), 1);
    assert_int_equal(sessions_of(&scene, 1), 1);
}

static void no_session_differs(void **state)
{
    const struct worker_place one = {.turns = 1000};

    assert_false(worker_places_differ(NULL, 0));
    assert_false(worker_places_differ(&one, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_of_slow_workers_change_places),
        cmocka_unit_test(nine_sessions_have_four_workers),
        cmocka_unit_test(sessions_of_equal_workers_stay),
        cmocka_unit_test(fewer_sessions_than_workers_have_a_worker_each),
        cmocka_unit_test(no_session_differs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
