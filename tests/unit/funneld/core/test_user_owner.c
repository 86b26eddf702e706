/* SPDX-License-Identifier: Apache-2.0 */
/* Subordinate user IDs belong to whom the file gives them. */
#include "user_owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static char path[64];

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    int fd;

    strcpy(path, "/tmp/funnel-subuid-XXXXXX");
    fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    return unlink(path);
}

static void ranges_have_owners(void **state)
{
    write_file("root:1000000:65536\n2001:100000:65536\n2002:165536:10\n");
    assert_int_equal(user_owner_by(path, 99999), 99999);
    assert_int_equal(user_owner_by(path, 100000), 2001);
    assert_int_equal(user_owner_by(path, 165535), 2001);
    assert_int_equal(user_owner_by(path, 165536), 2002);
    assert_int_equal(user_owner_by(path, 165546), 165546);
    assert_int_equal(user_owner_by(path, 1000001), 0);
    assert_int_equal(user_owner_by(path, 2001), 2001);
}

static void a_change_is_seen(void **state)
{
    write_file("2001:100000:65536\n");
    assert_int_equal(user_owner_by(path, 100001), 2001);
    write_file("2002:100000:65536:\n2003:100000:65536\n");
    assert_int_equal(user_owner_by(path, 100001), 2003);
    assert_int_equal(user_owner_by("/nonexistent/subuid", 100001), 100001);
}

static void nonsense_is_no_range(void **state)
{
    write_file("\n:\n::\n2001\n2001:1\n2001:x:5\n2001:-5:500000\n2001::\n2001:100000:\n"
               "no-such-user-here:100000:5\n2001:100000:99999999999999999999999\n");
    assert_int_equal(user_owner_by(path, 100001), 100001);
    assert_int_equal(user_owner_by(path, 1), 1);
    write_file("2001:0:4294967296\n");
    assert_int_equal(user_owner_by(path, 0), 0);
    assert_int_equal(user_owner_by(path, UINT32_MAX - 1), 2001);
    write_file("2001:100000:18446744073709551615\n");
    assert_int_equal(user_owner_by(path, 99999), 99999);
    assert_int_equal(user_owner_by(path, 4000000), 2001);
}

int main(void)
{
#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_FILE(ranges_have_owners),
        WITH_FILE(a_change_is_seen),
        WITH_FILE(nonsense_is_no_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
