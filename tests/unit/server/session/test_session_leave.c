/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to move, and the word by which client and server speak of them. */
#include "session_leave.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel_server.h"
#include "fake_driver.h"
#include "move_obstacle.h"
#include "quota.h"
#include "server_life.h"
#include "session_life.h"

#define NO_ANSWER (-1)
#define REQUEST 7u

static int daemon_end;

static int setup(void **state)
{
    int pair[2];

    if (fixture_setup(state) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair))
        return -1;
    struct fixture *fixture = *state;
    fixture->server.life->control_fd = pair[0];
    daemon_end = pair[1];
    fixture->server.life->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fixture->session->phase = SESSION_SERVING;
    list_append(&fixture->server.sessions, &fixture->session->link);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    list_remove(&fixture->session->link);
    close(fixture->server.life->control_fd);
    fixture->server.life->control_fd = -1;
    close(fixture->server.life->notify_fd);
    close(daemon_end);
    return fixture_teardown(state);
}

static struct session *session_of(void **state)
{
    return ((struct fixture *)*state)->session;
}

static int answer(void)
{
    struct server_result result;

    if (recv(daemon_end, &result, sizeof(result), 0) != sizeof(result))
        return NO_ANSWER;
    assert_int_equal(result.header.request, REQUEST);
    return result.status;
}

static void order(struct session *session, bool is_cheap)
{
    const struct server_move_client message = {.header.request = REQUEST, .cheap = is_cheap};

    session_leave_order(session, &message);
}

static void set_word(const struct session *session, uint32_t word)
{
    session->channel->region->leave = word;
}

static void expect_word(const struct session *session, uint32_t word)
{
    assert_int_equal(channel_server_leave(session->channel), word);
}

static void a_client_that_stands_still_hears_of_an_order_later(void **state)
{
    struct session *session = session_of(state);

    set_word(session, LEAVE_SETTLED);
    order(session, false);
    expect_word(session, LEAVE_SETTLED);
    session_leave_unsettle(session);
    expect_word(session, LEAVE_WANTED);
    assert_int_equal(answer(), NO_ANSWER);
}

static void an_order_that_is_withdrawn_meanwhile_is_none(void **state)
{
    struct session *session = session_of(state);

    set_word(session, LEAVE_SETTLED);
    order(session, false);
    session_leave_withdraw(session);
    assert_int_equal(answer(), OBSTACLE_MOVING);
    session_leave_unsettle(session);
    expect_word(session, LEAVE_NONE);
}

/* The next one must not be answered by it. */
static void a_refusal_ends_with_its_order(void **state)
{
    struct session *session = session_of(state);
    uint32_t request, obstacle;

    order(session, false);
    set_word(session, LEAVE_REFUSED | OBSTACLE_CALL << LEAVE_OBSTACLE_SHIFT);
    session_leave_withdraw(session);
    assert_int_equal(answer(), OBSTACLE_MOVING);
    expect_word(session, LEAVE_NONE);
    order(session, false);
    expect_word(session, LEAVE_WANTED);
    assert_false(session_leave_answer(session, &request, &obstacle));
}

static void a_client_with_the_grant_has_its_order(void **state)
{
    struct session *session = session_of(state);

    order(session, false);
    set_word(session, LEAVE_GRANTED);
    session_leave_withdraw(session);
    expect_word(session, LEAVE_GRANTED);
    assert_true(session->life->leave_ordered);
    assert_int_equal(answer(), NO_ANSWER);
}

/* It had what keeps it here. */
static void a_client_with_the_grant_may_stay_after_all(void **state)
{
    struct session *session = session_of(state);
    uint32_t request, obstacle;
    eventfd_t notified;

    order(session, false);
    set_word(session, LEAVE_GRANTED);
    session_leave_withdraw(session);
    set_word(session, LEAVE_WANTED);
    session_leave_watch(session->server);
    assert_int_equal(eventfd_read(session->server->life->notify_fd, &notified), 0);
    assert_false(session_leave_answer(session, &request, &obstacle));
    expect_word(session, LEAVE_NONE);
    assert_int_equal(answer(), OBSTACLE_MOVING);
}

static void a_client_without_an_order_keeps_none_of_its_words(void **state)
{
    static const uint32_t words[] = {LEAVE_WANTED, LEAVE_ASKED, LEAVE_PENDING, 99};
    struct session *session = session_of(state);

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        set_word(session, words[i]);
        session_leave_withdraw(session);
        expect_word(session, LEAVE_NONE);
    }
    assert_int_equal(answer(), NO_ANSWER);
}

static void page_locked_memory_keeps_a_client_that_stands_still(void **state)
{
    struct session *session = session_of(state);

    assert_true(quota_take(session, QUOTA_HOST_MEMORY, 1ull << 30));
    set_word(session, LEAVE_SETTLED);
    order(session, true);
    assert_int_equal(answer(), OBSTACLE_PINNED);
    session_leave_unsettle(session);
    expect_word(session, LEAVE_NONE);
    order(session, true);
    assert_true(session->life->leave_ordered);
    expect_word(session, LEAVE_REFUSED | OBSTACLE_PINNED << LEAVE_OBSTACLE_SHIFT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_client_that_stands_still_hears_of_an_order_later),
        CASE(an_order_that_is_withdrawn_meanwhile_is_none),
        CASE(a_refusal_ends_with_its_order),
        CASE(a_client_with_the_grant_has_its_order),
        CASE(a_client_with_the_grant_may_stay_after_all),
        CASE(a_client_without_an_order_keeps_none_of_its_words),
        CASE(page_locked_memory_keeps_a_client_that_stands_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
