/* SPDX-License-Identifier: Apache-2.0 */
/* What front ends of operators and of other users may do, over a real connection. */
#include "console.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_protocol.h"
#include "daemon_quit.h"
#include "server_process.h"
#include "sock.h"
#include "unit.h"

#define DAEMON_USER 1000
#define OTHER_USER 2000

static struct daemon daemon_state;
static int far_end;
static struct console *console;

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    daemon_init(&daemon_state);
    daemon_state.uid = DAEMON_USER;
    daemon_state.device = "soft";
    daemon_state.instance.lock_fd = daemon_state.instance.listen_fd = -1;
    daemon_state.defaults.sm_centipercent = 10000;
    daemon_state.base = event_base_new();
    daemon_state.quit_timeout =
        evtimer_new(daemon_state.base, daemon_quit_on_timeout, &daemon_state);
    return daemon_state.base && daemon_state.quit_timeout ? 0 : -1;
}

static int teardown(void **state)
{
    console_close_all(&daemon_state);
    close(far_end);
    event_free(daemon_state.quit_timeout);
    event_base_free(daemon_state.base);
    return 0;
}

static void connect_as(uid_t uid)
{
    int ends[2];

    assert_int_equal(sock_pair(ends), 0);
    console_create(&daemon_state, ends[0], getpid(), uid);
    far_end = ends[1];
    console = container_of(daemon_state.consoles.next, struct console, link);
}

/* The next part of an answer: its kind, or -1 when there is none. */
static int receive(union command_any *ret_message)
{
    size_t fds = 0;

    memset(ret_message, 0, sizeof(*ret_message));
    return sock_recv(far_end, ret_message, sizeof(*ret_message), NULL, 0, &fds, 0) > 0
               ? (int)ret_message->header.kind
               : -1;
}

/* Gives a command: its status, or -1 while it is not done; with the last line of its answer. */
static int command(const char *line, char last[COMMAND_TEXT_MAX])
{
    struct command_text message = {{COMMAND_MAGIC, COMMAND_LINE}, ""};
    static union command_any part;
    int kind;

    memcpy(message.text, line, strlen(line));
    assert_int_equal(sock_send(far_end, &message, sizeof(message.header) + strlen(line), NULL, 0),
                     0);
    event_base_loop(daemon_state.base, EVLOOP_NONBLOCK);
    *last = '\0';
    while ((kind = receive(&part)) > 0) {
        if (kind == COMMAND_DONE)
            return part.done.status;
        strcpy(last, part.text.text);
    }
    return -1;
}

static void test_other_users_may_not_quit(void **state)
{
    char last[COMMAND_TEXT_MAX];

    connect_as(OTHER_USER);
    assert_int_equal(command("quit", last), COMMAND_REJECTED);
    assert_string_equal(last,
                        "Permission denied: this command is for root and the daemon's own user");
    assert_int_equal(command("quit -t 0", last), COMMAND_REJECTED);
    assert_false(daemon_state.quitting);
}

static void check_may_quit(uid_t uid)
{
    static union command_any part;
    char last[COMMAND_TEXT_MAX];

    connect_as(uid);
    assert_int_equal(command("quit", last), -1);
    assert_true(daemon_state.quitting);
    assert_true(event_base_got_break(daemon_state.base));
    daemon_quit_finish(&daemon_state);
    assert_int_equal(receive(&part), COMMAND_DONE);
    assert_int_equal(part.done.status, COMMAND_OK);
}

static void test_root_may_quit(void **state)
{
    check_may_quit(0);
}

static void test_the_daemons_user_may_quit(void **state)
{
    check_may_quit(DAEMON_USER);
}

static void test_a_server_that_ends_does_not_end_the_daemon(void **state)
{
    daemon_quit_server_reaped(&daemon_state);
    event_base_loop(daemon_state.base, EVLOOP_NONBLOCK);
    assert_false(event_base_got_break(daemon_state.base));
    daemon_state.quitting = true;
    daemon_quit_server_reaped(&daemon_state);
    assert_true(event_base_got_break(daemon_state.base));
}

static int seconds_to_the_end(void)
{
    struct timeval due, now;

    assert_true(event_pending(daemon_state.quit_timeout, EV_TIMEOUT, &due));
    evutil_gettimeofday(&now, NULL);
    return (int)(due.tv_sec - now.tv_sec);
}

static void test_a_second_quit_only_shortens_the_time(void **state)
{
    struct server_process server = {.daemon = &daemon_state, .state = SERVER_ACTIVE};

    server.connection.fd = -1;
    list_append(&daemon_state.servers, &server.link);
    daemon_quit(&daemon_state, -1, NULL);
    assert_false(event_pending(daemon_state.quit_timeout, EV_TIMEOUT, NULL));
    daemon_quit(&daemon_state, 100, NULL);
    daemon_quit(&daemon_state, 1000, NULL);
    daemon_quit(&daemon_state, -1, NULL);
    assert_in_range(seconds_to_the_end(), 50, 100);
    daemon_quit(&daemon_state, 10, NULL);
    assert_in_range(seconds_to_the_end(), 0, 10);
    assert_true(server.stopping);
}

static void test_rights_of_users_and_root(void **state)
{
    struct server_process own = {.uid = OTHER_USER}, foreign = {.uid = OTHER_USER + 1};

    connect_as(OTHER_USER);
    assert_false(console_is_operator(console));
    assert_true(console_may_manage(console, &own));
    assert_false(console_may_manage(console, &foreign));
    /* The one server of all users is for operators. */
    daemon_state.multiuser = true;
    assert_false(console_may_manage(console, &own));
    console->uid = DAEMON_USER;
    assert_true(console_is_operator(console));
    assert_true(console_may_manage(console, &foreign));
}

static void test_defaults(void **state)
{
    char last[COMMAND_TEXT_MAX];

    connect_as(OTHER_USER);
    assert_int_equal(command("set_default_active_thread_percentage 50", last), COMMAND_REJECTED);
    assert_int_equal(command("get_default_active_thread_percentage", last), COMMAND_OK);
    assert_string_equal(last, "100.0");
    console->uid = 0;
    assert_int_equal(command("set_default_active_thread_percentage 50", last), COMMAND_OK);
    assert_string_equal(last, "50.0");
    assert_int_equal(command("set_default_device_pinned_mem_limit 0 2G", last), COMMAND_OK);
    assert_int_equal(command("get_default_device_pinned_mem_limit 0", last), COMMAND_OK);
    assert_string_equal(last, "2G");
}

static void test_unknown_commands(void **state)
{
    char last[COMMAND_TEXT_MAX];

    connect_as(0);
    assert_int_equal(command("", last), COMMAND_OK);
    assert_int_equal(command("get_server_lists", last), COMMAND_REJECTED);
    assert_string_equal(last, "Unknown command \"get_server_lists\"");
    assert_int_equal(command("get_server_status 4711", last), COMMAND_REJECTED);
    assert_string_equal(last, "Server 4711 not found");
    assert_int_equal(command("a b c d e f g h i j k l m n o p q", last), COMMAND_REJECTED);
    assert_string_equal(last, "Too many words");
}

static void test_lists_without_servers(void **state)
{
    char last[COMMAND_TEXT_MAX];

    connect_as(0);
    assert_int_equal(command("server list --format=csv", last), COMMAND_OK);
    assert_string_equal(last, "name,uid,pid,status,pipe-directory,allowed-devices,context-ids");
    assert_int_equal(command("server list --format=csv,noheader", last), COMMAND_OK);
    assert_string_equal(last, "");
    assert_int_equal(command("server list night", last), COMMAND_FAILED);
    assert_string_equal(last, "Server 'night' not found");
    assert_int_equal(command("client get 4711 cmd", last), COMMAND_FAILED);
    assert_string_equal(last, "Client 4711 not found");
    assert_int_equal(command("feature describe memacct --format=csv,noheader", last), COMMAND_OK);
    assert_string_equal(last, "memacct,enabled (default),memacct,device memory of each client");
}

/* How many parts of each kind the structured answer has. */
static void query(unsigned counts[128])
{
    struct command_header message = {COMMAND_MAGIC, COMMAND_QUERY};
    static union command_any part;
    int kind;

    memset(counts, 0, 128 * sizeof(*counts));
    assert_int_equal(sock_send(far_end, &message, sizeof(message), NULL, 0), 0);
    event_base_loop(daemon_state.base, EVLOOP_NONBLOCK);
    while ((kind = receive(&part)) > 0)
        counts[kind & 127]++;
}

static void test_rules_are_shown_to_operators_only(void **state)
{
    struct limit_change change = {.sm_centipercent = 2500};
    unsigned counts[128];

    connect_as(OTHER_USER);
    assert_int_equal(limit_rules_set(&daemon_state.rules, "", 77, &change), 0);
    query(counts);
    assert_int_equal(counts[COMMAND_DAEMON], 1);
    assert_int_equal(counts[COMMAND_LIMIT], 1); /* the defaults */
    assert_int_equal(counts[COMMAND_DONE], 1);
    console->uid = 0;
    query(counts);
    assert_int_equal(counts[COMMAND_LIMIT], 2);
}

static void test_a_message_of_no_kind_ends_the_connection(void **state)
{
    struct command_header message = {COMMAND_MAGIC, 77};

    connect_as(0);
    assert_int_equal(console_count(&daemon_state, 0), 1);
    assert_int_equal(sock_send(far_end, &message, sizeof(message), NULL, 0), 0);
    event_base_loop(daemon_state.base, EVLOOP_NONBLOCK);
    assert_int_equal(console_count(&daemon_state, 0), 0);
}

int main(void)
{
#define WITH_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_DAEMON(test_other_users_may_not_quit),
        WITH_DAEMON(test_root_may_quit),
        WITH_DAEMON(test_the_daemons_user_may_quit),
        WITH_DAEMON(test_a_server_that_ends_does_not_end_the_daemon),
        WITH_DAEMON(test_a_second_quit_only_shortens_the_time),
        WITH_DAEMON(test_rights_of_users_and_root),
        WITH_DAEMON(test_defaults),
        WITH_DAEMON(test_unknown_commands),
        WITH_DAEMON(test_lists_without_servers),
        WITH_DAEMON(test_rules_are_shown_to_operators_only),
        WITH_DAEMON(test_a_message_of_no_kind_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
