/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in quarantine, and for how long. */
#include "quarantine.h"

#include <string.h>

#include "clock.h"
#include "text.h"
#include "unit.h"

#define SECONDS(count) (NS_PER_SEC * (count))

static const uint64_t start = SECONDS(1000ull);

static struct client_program program_of(uint32_t uid, uint64_t inode)
{
    return (struct client_program){
        .uid = uid, .container = 1, .executable = {.device = 5, .inode = inode, .born_s = 99}};
}

static void test_the_first_fault_counts(void **state)
{
    struct quarantine quarantine = {0};
    const struct client_program a = program_of(7, 1), b = program_of(7, 2),
                                others = program_of(8, 1);

    assert_false(quarantine_has(&quarantine, &a, start));
    assert_true(quarantine_add_fault(&quarantine, &a, start));
    assert_true(quarantine_has(&quarantine, &a, start));
    assert_false(quarantine_has(&quarantine, &b, start));
    assert_false(quarantine_has(&quarantine, &others, start));
    assert_int_equal(quarantine_count(&quarantine, 7, start), 1);
    assert_int_equal(quarantine_count(&quarantine, 8, start), 0);
    assert_false(quarantine_add_fault(&quarantine, &a, start + 1));
    assert_int_equal(quarantine_count(&quarantine, 7, start + 1), 1);
}

/* Each fault in quarantine begins the ten minutes anew. */
static void test_end(void **state)
{
    struct quarantine quarantine = {0};
    const struct client_program a = program_of(7, 1);

    assert_true(quarantine_add_fault(&quarantine, &a, start));
    assert_true(quarantine_has(&quarantine, &a, start + SECONDS(599)));
    assert_false(quarantine_add_fault(&quarantine, &a, start + SECONDS(599)));
    assert_true(quarantine_has(&quarantine, &a, start + SECONDS(1198)));
    assert_false(quarantine_has(&quarantine, &a, start + SECONDS(1199)));
    assert_int_equal(quarantine_count(&quarantine, 7, start + SECONDS(1199)), 0);
    assert_true(quarantine_add_fault(&quarantine, &a, start + SECONDS(1199)));
}

static void test_many_programs(void **state)
{
    struct quarantine quarantine = {0};

    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++) {
        const struct client_program program = program_of(7, 1 + i);

        quarantine_add_fault(&quarantine, &program, start + i);
    }
    const struct client_program first = program_of(7, 1), second = program_of(7, 2),
                                more = program_of(7, 100);

    assert_true(quarantine_has(&quarantine, &first, start + SECONDS(1)));
    quarantine_add_fault(&quarantine, &more, start + SECONDS(1));
    assert_false(quarantine_has(&quarantine, &first, start + SECONDS(1)));
    assert_true(quarantine_has(&quarantine, &second, start + SECONDS(1)));
    assert_true(quarantine_has(&quarantine, &more, start + SECONDS(1)));
}

/* ---- what a program is ---- */

static void test_programs_differ_in_each_part(void **state)
{
    struct client_program one = program_of(7, 1);
    struct client_program others[] = {one, one, one, one, one, one};

    strcpy(one.path, "/bin/a");
    assert_true(client_program_is_same(&one, &one));
    assert_true(client_program_hash(&one) == client_program_hash(&one));
    others[0].uid++;
    others[1].container++;
    others[2].executable.device++;
    others[3].executable.born_ns++;
    strcpy(others[4].script, "a.py");
    others[5].folder.inode++;
    for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_false(client_program_is_same(&one, &others[i]));
        assert_true(client_program_hash(&one) != client_program_hash(&others[i]));
    }
}

static void test_a_name_counts_for_nothing(void **state)
{
    struct client_program one = program_of(7, 1), other = one;

    strcpy(one.path, "/bin/a");
    strcpy(other.path, "/bin/b");
    assert_true(client_program_is_same(&one, &other));
    assert_true(client_program_hash(&one) == client_program_hash(&other));
    one.executable = other.executable = (struct client_file){0};
    assert_false(client_program_is_same(&one, &other));
    assert_true(client_program_hash(&one) != client_program_hash(&other));
}

/* ---- a user with many programs there ---- */

static struct daemon daemon_state;

static bool is_held(uint32_t uid, uint64_t inode)
{
    const struct server_identity identity = {.uid = uid};
    const struct client_program program = program_of(uid, inode);

    return quarantine_has_client(&daemon_state, &identity, &program);
}

static void note(uint32_t uid, uint64_t inode)
{
    const struct server_identity identity = {.uid = uid};
    const struct client_program program = program_of(uid, inode);

    quarantine_note(&daemon_state, &identity, &program);
}

static void test_a_user_whose_programs_all_fault(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    daemon_state.multiuser = true;
    note(7, 1);
    note(7, 2);
    note(7, 2);
    assert_true(is_held(7, 2));
    assert_false(is_held(7, 9));
    note(7, 3);
    assert_true(is_held(7, 9));
    assert_false(is_held(8, 9));
    daemon_state.multiuser = false;
    assert_true(is_held(7, 1));
    assert_false(is_held(7, 9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_fault_counts),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_many_programs),
        cmocka_unit_test(test_programs_differ_in_each_part),
        cmocka_unit_test(test_a_name_counts_for_nothing),
        cmocka_unit_test(test_a_user_whose_programs_all_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
