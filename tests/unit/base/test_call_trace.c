/* SPDX-License-Identifier: Apache-2.0 */
/* The format of a trace's lines, which scripts read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "call_trace.h"
#include "clock.h"

__attribute__((format(printf, 4, 5))) static bool trace(int fd, uint64_t began_ns, int result,
                                                        const char *format, ...)
{
    va_list arguments;
    bool written;

    va_start(arguments, format);
    written = call_trace_write(fd, "cuInit", began_ns, result, format, arguments);
    va_end(arguments);
    return written;
}

static void read_back(int fd, char *ret_text, size_t size)
{
    ssize_t length = pread(fd, ret_text, size - 1, 0);

    assert_true(length > 0);
    ret_text[length] = 0;
}

static void test_line(void **state)
{
    FILE *file = tmpfile();
    char text[256], rest[128];
    int pid, tid;
    unsigned long long start, took;

    assert_true(trace(fileno(file), clock_ns() - 3 * NS_PER_MS, 0, "Flags=%u", 7u));
    read_back(fileno(file), text, sizeof(text));
    assert_int_equal(sscanf(text, "%d.%d %llu %llu %127[^\n]", &pid, &tid, &start, &took, rest), 5);
    assert_int_equal(pid, getpid());
    assert_int_equal(tid, gettid());
    assert_true(start > 0 && took >= 3000);
    assert_string_equal(rest, "cuInit(Flags=7) = 0");
    fclose(file);
}

static void test_long_arguments_are_cut(void **state)
{
    FILE *file = tmpfile();
    char text[2048], many[1500];

    memset(many, 'x', sizeof(many) - 1);
    many[sizeof(many) - 1] = 0;
    assert_true(trace(fileno(file), clock_ns(), -999, "%s", many));
    read_back(fileno(file), text, sizeof(text));
    assert_true(strlen(text) < 1024);
    assert_string_equal(text + strlen(text) - strlen("xx) = -999\n"), "xx) = -999\n");
    fclose(file);
}

static void test_unknown_start(void **state)
{
    FILE *file = tmpfile();
    char text[256];
    unsigned long long start, took;

    assert_true(trace(fileno(file), 0, 0, "%s", ""));
    read_back(fileno(file), text, sizeof(text));
    assert_int_equal(sscanf(text, "%*s %llu %llu", &start, &took), 2);
    assert_true(start > 0);
    assert_int_equal(took, 0);
    fclose(file);
}

static void test_unwritable_file(void **state)
{
    assert_false(trace(-1, clock_ns(), 0, "%s", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_long_arguments_are_cut),
        cmocka_unit_test(test_unknown_start),
        cmocka_unit_test(test_unwritable_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
