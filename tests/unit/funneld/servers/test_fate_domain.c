/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs share a lane, by isolation. */
#include "fate_domain.h"

#include <string.h>

#include "client_class.h"
#include "isolation.h"
#include "quarantine.h"
#include "server_process.h"
#include "unit.h"

static struct daemon daemon_state;
static struct client_program program;
static struct server_identity identity;
static struct fate_wish wish;
static char domain[LANE_DOMAIN_MAX];

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    daemon_init(&daemon_state);
    program = (struct client_program){.uid = 7, .executable = {.device = 5, .inode = 9}};
    identity = (struct server_identity){.uid = 7, .group = "blue"};
    wish = (struct fate_wish){.service = "night", .class = CLASS_NORMAL};
    return 0;
}

/* Whether it is one of the user alone. */
static bool find_domain(uint32_t set, uint32_t asked)
{
    wish.set = set;
    wish.asked = asked;
    return fate_domain_find(&daemon_state, &identity, &program, &wish, domain);
}

static void test_none(void **state)
{
    assert_false(find_domain(ISOLATION_UNSET, ISOLATION_UNSET));
    assert_string_equal(domain, "");
    assert_false(find_domain(ISOLATION_NONE, 4711));
    assert_string_equal(domain, "");
}

static void test_class(void **state)
{
    find_domain(ISOLATION_CLASS, ISOLATION_UNSET);
    assert_string_equal(domain, "");
    wish.class = CLASS_CRITICAL;
    assert_false(find_domain(ISOLATION_CLASS, ISOLATION_UNSET));
    assert_string_equal(domain, "critical");
    wish.class = CLASS_BATCH;
    find_domain(ISOLATION_CLASS, ISOLATION_UNSET);
    assert_string_equal(domain, "");
}

static void test_user(void **state)
{
    find_domain(ISOLATION_USER, ISOLATION_UNSET);
    assert_string_equal(domain, "");
    daemon_state.multiuser = true;
    assert_true(find_domain(ISOLATION_USER, ISOLATION_UNSET));
    assert_string_equal(domain, "user_7");
}

static void test_group(void **state)
{
    find_domain(ISOLATION_UNSET, ISOLATION_GROUP);
    assert_string_equal(domain, "group_blue");
    daemon_state.multiuser = true;
    assert_true(find_domain(ISOLATION_UNSET, ISOLATION_GROUP));
    assert_string_equal(domain, "group_blue_7");
    *identity.group = '\0';
    assert_false(find_domain(ISOLATION_GROUP, ISOLATION_UNSET));
    assert_string_equal(domain, "");
}

static void test_program(void **state)
{
    char first[LANE_DOMAIN_MAX];

    find_domain(ISOLATION_PROGRAM, ISOLATION_UNSET);
    assert_memory_equal(domain, "program_", strlen("program_"));
    strcpy(first, domain);
    find_domain(ISOLATION_UNSET, ISOLATION_PROGRAM);
    assert_string_equal(domain, first);
    program.executable.inode++;
    find_domain(ISOLATION_PROGRAM, ISOLATION_UNSET);
    assert_string_not_equal(domain, first);
}

static void test_new(void **state)
{
    find_domain(ISOLATION_NEW, ISOLATION_UNSET);
    assert_memory_equal(domain, "new_", strlen("new_"));
    known_programs_add(&daemon_state.known, &program);
    find_domain(ISOLATION_NEW, ISOLATION_UNSET);
    assert_string_equal(domain, "");
    quarantine_note(&daemon_state, &identity, &program);
    assert_false(known_programs_has(&daemon_state.known, &program));
}

/* While processes of it are in its lane, others join them there. */
static void test_a_known_program_stays_together(void **state)
{
    struct server_process lane = {.role = SERVER_SERVING, .handed_over = 1};

    find_domain(ISOLATION_NEW, ISOLATION_UNSET);
    lane_name(wish.service, false, domain, lane.name);
    list_append(&daemon_state.servers, &lane.link);
    known_programs_add(&daemon_state.known, &program);
    find_domain(ISOLATION_NEW, ISOLATION_UNSET);
    assert_string_equal(domain, lane_text(lane.name));
    lane.handed_over = 0;
    find_domain(ISOLATION_NEW, ISOLATION_UNSET);
    assert_string_equal(domain, "");
}

static void test_the_smaller_domain_comes_first(void **state)
{
    find_domain(ISOLATION_GROUP, ISOLATION_NEW);
    assert_memory_equal(domain, "new_", strlen("new_"));
    known_programs_add(&daemon_state.known, &program);
    find_domain(ISOLATION_GROUP, ISOLATION_NEW);
    assert_string_equal(domain, "group_blue");
    find_domain(ISOLATION_GROUP, ISOLATION_PROGRAM);
    assert_memory_equal(domain, "program_", strlen("program_"));
    find_domain(ISOLATION_PROGRAM, ISOLATION_GROUP);
    assert_memory_equal(domain, "program_", strlen("program_"));
}

static void test_quarantine_comes_first(void **state)
{
    quarantine_note(&daemon_state, &identity, &program);
    find_domain(ISOLATION_PROGRAM, ISOLATION_UNSET);
    assert_string_equal(domain, "quarantine");
    daemon_state.multiuser = true;
    assert_true(find_domain(ISOLATION_UNSET, ISOLATION_UNSET));
    assert_string_equal(domain, "quarantine_7");
}

static void test_domains_that_need_the_program(void **state)
{
    find_domain(ISOLATION_GROUP, ISOLATION_USER);
    assert_false(fate_domain_needs_program(&wish));
    find_domain(ISOLATION_UNSET, 4711);
    assert_false(fate_domain_needs_program(&wish));
    find_domain(ISOLATION_NEW, ISOLATION_UNSET);
    assert_true(fate_domain_needs_program(&wish));
    find_domain(ISOLATION_UNSET, ISOLATION_PROGRAM);
    assert_true(fate_domain_needs_program(&wish));
}

static void test_many_known_programs(void **state)
{
    struct client_program first = program;

    for (unsigned i = 0; i <= KNOWN_PROGRAMS_MAX; i++) {
        assert_int_equal(known_programs_has(&daemon_state.known, &first), i > 0 && i <= 1024);
        program.executable.inode = first.executable.inode + i;
        known_programs_add(&daemon_state.known, &program);
        known_programs_add(&daemon_state.known, &program);
    }
    assert_false(known_programs_has(&daemon_state.known, &first));
    assert_true(known_programs_has(&daemon_state.known, &program));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_none, setup),
        cmocka_unit_test_setup(test_class, setup),
        cmocka_unit_test_setup(test_user, setup),
        cmocka_unit_test_setup(test_group, setup),
        cmocka_unit_test_setup(test_program, setup),
        cmocka_unit_test_setup(test_new, setup),
        cmocka_unit_test_setup(test_a_known_program_stays_together, setup),
        cmocka_unit_test_setup(test_the_smaller_domain_comes_first, setup),
        cmocka_unit_test_setup(test_quarantine_comes_first, setup),
        cmocka_unit_test_setup(test_domains_that_need_the_program, setup),
        cmocka_unit_test_setup(test_many_known_programs, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
