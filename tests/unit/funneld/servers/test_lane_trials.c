/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are moved without an order, and those that come back. The test sets the clock, and
 * says when a move ends. */
#include <string.h>

#include "client_class.h"
#include "client_record.h"
#include "lane_move.h"
#include "move_obstacle.h"
#include "server_process.h"
#include "unit.h"

#define REPORT_NS (2 * NS_PER_SEC)

static struct daemon daemon_state;
static struct server_process main_lane, batch_lane;
static struct client_record offender, victim, other;
static uint64_t now;

/* The last order. */
static struct {
    unsigned moves, prepared;
    enum lane_wish wish;
    lane_move_done *done;
    void *context;
} order;

uint64_t __wrap_clock_ns(void);
void __wrap_lane_move_order_gently(struct client_record *record, enum lane_wish wish,
                                   lane_move_done *done, void *context);
void __wrap_lane_move_prepare(const struct client_record *record, enum lane_wish wish);

uint64_t __wrap_clock_ns(void)
{
    return now;
}

void __wrap_lane_move_order_gently(struct client_record *record, enum lane_wish wish,
                                   lane_move_done *done, void *context)
{
    assert_ptr_equal(record, &offender);
    order.moves++;
    order.wish = wish;
    order.done = done;
    order.context = context;
}

void __wrap_lane_move_prepare(const struct client_record *record, enum lane_wish wish)
{
    assert_ptr_equal(record, &offender);
    assert_int_equal(wish, LANE_BATCH);
    order.prepared++;
}

static void end_order(int result)
{
    lane_move_done *done = order.done;

    assert_non_null(done);
    order.done = NULL;
    done(order.context, result);
}

/* ---- the scene: two lanes, and three programs in the main lane ---- */

static void begin_lane(struct server_process *lane, const char *name)
{
    *lane = (struct server_process){.daemon = &daemon_state, .role = SERVER_SERVING};
    strcpy(lane->name, name);
    strcpy(lane->service, "night");
    list_init(&lane->records);
    list_append(&daemon_state.servers, &lane->link);
}

static void enter(struct client_record *record, struct server_process *lane)
{
    record->server = lane;
    list_append(&lane->records, &record->link);
}

static void begin_program(struct client_record *record, uint8_t number)
{
    *record = (struct client_record){
        .id = number, .attached = true, .class = CLASS_NORMAL, .token = {number}};
    enter(record, &main_lane);
}

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    memset(&order, 0, sizeof(order));
    daemon_init(&daemon_state);
    strcpy(daemon_state.paths.log, "/nonexistent");
    daemon_state.lane_moves_on = true;
    now = 1000 * NS_PER_SEC;
    begin_lane(&main_lane, "night");
    begin_lane(&batch_lane, "night:batch");
    begin_program(&offender, 1);
    begin_program(&victim, 2);
    begin_program(&other, 3);
    return 0;
}

static int teardown(void **state)
{
    list_remove(&offender.link);
    list_remove(&victim.link);
    list_remove(&other.link);
    if (order.done)
        end_order(LANE_MOVE_GONE);
    now += 2 * LANE_OBSTACLE_NS;
    lane_watch_close(&daemon_state);
    assert_true(list_empty(&daemon_state.lane_trials));
    return 0;
}

/* ---- what programs do ---- */

static void report(struct client_record *record, uint64_t busy_ms, uint64_t shared_ms,
                   uint64_t launches)
{
    record->last.usage.gpu_ns[0] += busy_ms * NS_PER_MS;
    record->last.usage.shared_ns += shared_ms * NS_PER_MS;
    record->last.usage.launches += launches;
    lane_watch_note(record);
}

static void offender_works(void)
{
    report(&offender, 1200, offender.server == &main_lane ? 1100 : 0, 100);
}

static void victim_waits(void)
{
    report(&victim, 1000, 1000, 80);
}

static void victim_is_fast(void)
{
    report(&victim, 500, 0, 1000);
}

/* The reports that come at one time, and the time up to the next ones. */
static void wait_once(void)
{
    offender_works();
    victim_waits();
    now += REPORT_NS;
}

static void gain_once(void)
{
    offender_works();
    victim_is_fast();
    now += REPORT_NS;
}

/* Each has been alone. */
static void learn_kernels(void)
{
    report(&offender, 1200, 0, 100);
    victim_is_fast();
    now += REPORT_NS;
}

static void change_lane(struct server_process *lane)
{
    list_remove(&offender.link);
    enter(&offender, lane);
    lane_choice_set(&daemon_state.lane_choices, offender.token, CLASS_UNSET,
                    lane == &batch_lane ? LANE_BATCH : LANE_OF_CLASS);
}

/* Until the program with long kernels is in the batch lane. */
static void move_away(void)
{
    learn_kernels();
    wait_once();
    wait_once();
    assert_int_equal(order.moves, 1);
    assert_int_equal(order.wish, LANE_BATCH);
    change_lane(&batch_lane);
    end_order(LANE_MOVED);
}

static void assert_returns(void)
{
    assert_int_equal(order.moves, 2);
    assert_int_equal(order.wish, LANE_OF_CLASS);
}

static void move_back(void)
{
    assert_returns();
    change_lane(&main_lane);
    end_order(LANE_MOVED);
}

/* ---- away ---- */

static void test_two_signs(void **state)
{
    learn_kernels();
    assert_int_equal(order.prepared, 0);
    wait_once();
    assert_int_equal(order.prepared, 1);
    assert_int_equal(order.moves, 0);
    wait_once();
    assert_int_equal(order.prepared, 1);
    assert_int_equal(order.moves, 1);
    wait_once();
    assert_int_equal(order.moves, 1);
}

/* A wait that ends moves no program, and starts a lane once a minute at most. */
static void test_single_signs(void **state)
{
    learn_kernels();
    for (unsigned i = 0; i < 10; i++) {
        wait_once();
        gain_once();
    }
    assert_int_equal(order.moves, 0);
    assert_int_equal(order.prepared, 1);
    now += LANE_AHEAD_NS;
    wait_once();
    assert_int_equal(order.prepared, 2);
}

/* Others make the victim wait. */
static void test_an_offender_that_has_stopped(void **state)
{
    learn_kernels();
    offender_works();
    now += LANE_FRESH_NS;
    for (unsigned i = 0; i < 5; i++) {
        victim_waits();
        now += REPORT_NS;
    }
    assert_int_equal(order.moves + order.prepared, 0);
}

static void test_no_program_is_moved_against_a_wish(void **state)
{
    learn_kernels();
    offender.is_of_job = true;
    for (unsigned i = 0; i < 3; i++)
        wait_once();
    offender.is_of_job = false;
    lane_choice_set(&daemon_state.lane_choices, offender.token, CLASS_NORMAL, LANE_OF_CLASS);
    for (unsigned i = 0; i < 3; i++)
        wait_once();
    lane_choice_set(&daemon_state.lane_choices, offender.token, CLASS_UNSET, LANE_OF_CLASS);
    offender.class = CLASS_CRITICAL;
    for (unsigned i = 0; i < 3; i++)
        wait_once();
    assert_int_equal(order.moves + order.prepared, 0);
}

static void test_switched_off(void **state)
{
    daemon_state.lane_moves_on = false;
    learn_kernels();
    for (unsigned i = 0; i < 3; i++)
        wait_once();
    assert_int_equal(order.moves + order.prepared, 0);
}

static void test_a_small_device(void **state)
{
    main_lane.ready.device_count = 1;
    main_lane.ready.devices[0] = (struct server_device){.own_mib = 600, .memory_total = 4ull << 30};
    learn_kernels();
    for (unsigned i = 0; i < 3; i++)
        wait_once();
    assert_int_equal(order.moves + order.prepared, 0);
}

/* ---- moves that are not possible ---- */

static void refuse(int result)
{
    learn_kernels();
    wait_once();
    wait_once();
    end_order(result);
    for (unsigned i = 0; i < 5; i++)
        wait_once();
    assert_int_equal(order.moves, 1);
}

static void test_an_obstacle_that_passes(void **state)
{
    refuse(OBSTACLE_WORK);
    now += LANE_RETRY_NS;
    wait_once();
    wait_once();
    assert_int_equal(order.moves, 2);
}

static void test_an_obstacle_that_stays(void **state)
{
    refuse(OBSTACLE_ARRAY);
    now += LANE_RETRY_NS;
    wait_once();
    wait_once();
    assert_int_equal(order.moves, 1);
    assert_int_equal(order.prepared, 1);
    now += LANE_OBSTACLE_NS;
    wait_once();
    wait_once();
    assert_int_equal(order.moves, 2);
}

/* ---- and back ---- */

static void test_a_move_that_pays(void **state)
{
    move_away();
    for (unsigned i = 0; i < 100; i++)
        gain_once();
    assert_int_equal(order.moves, 1);
}

static void test_a_move_that_does_not_pay(void **state)
{
    move_away();
    for (unsigned i = 0; i < 3; i++) {
        offender_works();
        victim_waits();
        now += REPORT_NS;
    }
    assert_int_equal(order.moves, 1);
    offender_works();
    move_back();
    for (unsigned i = 0; i < 5; i++)
        wait_once();
    assert_int_equal(order.moves, 2);
    now += LANE_RETRY_NS;
    wait_once();
    wait_once();
    assert_int_equal(order.moves, 3);
}

static void test_a_move_by_which_it_loses(void **state)
{
    move_away();
    gain_once();
    report(&offender, 1200, 0, 10);
    assert_int_equal(order.moves, 1);
    offender_works();
    report(&offender, 1200, 0, 10);
    assert_int_equal(order.moves, 1);
    report(&offender, 1200, 0, 10);
    assert_returns();
}

static void test_kernels_that_become_short(void **state)
{
    move_away();
    gain_once();
    gain_once();
    report(&offender, 1200, 0, 10000);
    move_back();
    wait_once();
    report(&offender, 1200, 0, 100);
    wait_once();
    wait_once();
    assert_int_equal(order.moves, 3);
}

static void test_no_other_program_works(void **state)
{
    move_away();
    gain_once();
    for (unsigned i = 0; i < 40 && order.moves == 1; i++) {
        offender_works();
        now += REPORT_NS;
    }
    assert_returns();
}

static void test_a_return_that_is_not_possible(void **state)
{
    move_away();
    gain_once();
    gain_once();
    report(&offender, 1200, 0, 10000);
    assert_returns();
    end_order(OBSTACLE_CALL);
    report(&offender, 1200, 0, 10000);
    assert_int_equal(order.moves, 2);
    now += LANE_STAY_NS;
    report(&offender, 1200, 0, 10000);
    assert_int_equal(order.moves, 3);
}

/* An earlier daemon has moved it. */
static void test_a_new_daemon(void **state)
{
    change_lane(&batch_lane);
    for (unsigned i = 0; i < 4; i++)
        gain_once();
    assert_int_equal(order.moves, 0);
    report(&offender, 1200, 0, 10000);
    assert_int_equal(order.moves, 1);
    assert_int_equal(order.wish, LANE_OF_CLASS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_signs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_single_signs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_offender_that_has_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_program_is_moved_against_a_wish, setup, teardown),
        cmocka_unit_test_setup_teardown(test_switched_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_small_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_obstacle_that_passes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_obstacle_that_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_that_pays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_that_does_not_pay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_by_which_it_loses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kernels_that_become_short, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_other_program_works, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_return_that_is_not_possible, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_new_daemon, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
