/* SPDX-License-Identifier: Apache-2.0 */
/* What a user takes of usage.jsonl, and what becomes of lines that cannot be written. */
#include "usage_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#define FLOODER 4711u
#define OTHER 4712u

static struct daemon daemon_state;
static struct server_ready ready = {.device_count = 1};
static char folder[64];

static int setup(void **state)
{
    strcpy(folder, "/tmp/funnel-usage-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(daemon_state.paths.log, sizeof(daemon_state.paths.log), "%s/log", folder);
    return mkdir(daemon_state.paths.log, 0755);
}

static int teardown(void **state)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static void add_of(uint32_t uid, uint32_t owner)
{
    const struct server_identity who = {
        .pid = 100, .uid = uid, .owner = owner, .command = "./program"};
    const struct server_client_gone gone = {.id = 1, .usage.launches = 1, .usage.gpu_ns = {1000}};

    usage_journal_add(&daemon_state, "night", &ready, &who, &gone, 1000);
}

static void add(uint32_t uid)
{
    add_of(uid, uid);
}

struct found {
    unsigned lines, clients, launches;
};

static void count_lines(FILE *file, uint32_t uid, struct found *found)
{
    char line[8192], user[32];

    snprintf(user, sizeof(user), "\"uid\":%u,", uid);
    while (fgets(line, sizeof(line), file)) {
        if (!strstr(line, user))
            continue;
        found->lines++;
        found->clients += (unsigned)atoi(strstr(line, "\"clients\":") + 10);
        found->launches += (unsigned)atoi(strstr(line, "\"launches\":") + 11);
    }
}

/* In all files of the journal. */
static struct found look_for(uint32_t uid)
{
    struct found found = {0};
    char path[128];

    for (unsigned i = 0; i <= 4; i++) {
        snprintf(path, sizeof(path), i ? "%s/log/usage.jsonl.%u" : "%s/log/usage.jsonl", folder, i);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        count_lines(file, uid, &found);
        fclose(file);
    }
    return found;
}

/* As many as would turn the whole journal over. */
static void test_a_user_has_a_share(void **state)
{
    const unsigned many = 130000;

    add(OTHER);
    for (unsigned i = 0; i < many; i++)
        add(FLOODER);
    add(OTHER);
    assert_int_equal(look_for(OTHER).lines, 2);
    assert_true(look_for(FLOODER).lines < 20000);
    usage_journal_close(&daemon_state);
    assert_int_equal(look_for(FLOODER).clients, many);
    assert_int_equal(look_for(FLOODER).launches, many);
    assert_int_equal(look_for(OTHER).clients, 2);
}

/* The users of a person's containers have none of their own. */
static void test_subordinate_users_share_it(void **state)
{
    add(OTHER);
    for (unsigned i = 0; i < 150000; i++)
        add_of(100000 + i / 500, FLOODER);
    add(OTHER);
    assert_int_equal(look_for(OTHER).lines, 2);
    usage_journal_close(&daemon_state);
    assert_in_range(look_for(FLOODER).clients, 144000, 150000);
}

static void test_lines_wait_for_the_disk(void **state)
{
    rmdir(daemon_state.paths.log);
    for (unsigned i = 0; i < 10; i++)
        add(0);
    usage_journal_write_rest(&daemon_state);
    assert_int_equal(look_for(0).lines, 0);
    mkdir(daemon_state.paths.log, 0755);
    usage_journal_write_rest(&daemon_state);
    assert_int_equal(look_for(0).lines, 10);
}

/* What waits is bounded, and yet no use is lost. */
static void test_more_than_may_wait(void **state)
{
    const unsigned many = 20000;

    rmdir(daemon_state.paths.log);
    for (unsigned i = 0; i < many; i++)
        add(0);
    mkdir(daemon_state.paths.log, 0755);
    usage_journal_write_rest(&daemon_state);
    assert_in_range(look_for(0).lines, 1000, many - 1);
    usage_journal_close(&daemon_state);
    assert_int_equal(look_for(0).clients, many);
}

static void append_text(const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/log/usage.jsonl", folder);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool has(uint32_t uid, uint64_t launches, int64_t ended)
{
    const struct server_identity who = {
        .pid = 100, .uid = uid, .owner = uid, .command = "./program"};
    const struct server_client_gone gone = {
        .id = 1, .usage.launches = launches, .usage.gpu_ns = {1000}};

    return usage_journal_has(&daemon_state, "night", &ready, &who, &gone, ended);
}

/* A daemon that is killed just after it has written a line leaves that to the next one. */
static void test_a_line_that_is_there(void **state)
{
    assert_false(has(0, 1, 1000));
    add(OTHER);
    add(0);
    assert_true(has(0, 1, 1000));
    assert_false(has(OTHER, 1, 1000));
    assert_false(has(0, 2, 1000));
    assert_false(has(0, 1, 1001));
}

static void test_half_a_line(void **state)
{
    usage_journal_mend(&daemon_state);
    add(0);
    append_text("{\"since\":17,\"uid\":0,\"laun");
    assert_false(has(0, 1, 1000));
    usage_journal_mend(&daemon_state);
    assert_true(has(0, 1, 1000));
    usage_journal_mend(&daemon_state);
    assert_int_equal(look_for(0).lines, 1);
}

int main(void)
{
#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_a_user_has_a_share),      WITH_FOLDER(test_subordinate_users_share_it),
        WITH_FOLDER(test_lines_wait_for_the_disk), WITH_FOLDER(test_more_than_may_wait),
        WITH_FOLDER(test_a_line_that_is_there),    WITH_FOLDER(test_half_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
