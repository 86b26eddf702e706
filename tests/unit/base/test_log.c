/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: their form, what cannot be forged in them, and that losing one does no harm. */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

static int open_memory(void)
{
    int fd = memfd_create("log", 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
    return fd;
}

/* All that was logged, to be freed. */
static char *contents(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)size + 1);
    assert_int_equal(pread(fd, text, (size_t)size, 0), size);
    return text;
}

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool match = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return match;
}

static void test_form_of_a_line(void **state)
{
    int fd = open_memory();
    log_open(fd, "Server");
    log_line("client %d connected", 42);
    log_open(-1, "");
    log_line("this is not logged");
    char *text = contents(fd);
    assert_true(matches(text,
                        "^\\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} "
                        "Server +[0-9]+\\] client 42 connected\n$"));
    free(text);
    close(fd);
}

static void test_a_client_cannot_forge_a_line(void **state)
{
    int fd = open_memory();
    log_open(fd, "Server");
    log_line("note: %s", "x\n[2026-01-01 00:00:00.000 Control     1] all is well");
    log_open(-1, "");
    char *text = contents(fd);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
    close(fd);
}

/* Records stand behind a tab, and no text has one. */
static void test_a_client_cannot_forge_a_record(void **state)
{
    int fd = open_memory();
    struct log_record record = {0};

    log_open(fd, "Server");
    log_line("note: %s", "x\t{\"client\":1,\"error\":2}");
    log_open(-1, "");
    char *text = contents(fd);
    assert_false(log_record_cut(text, &record));
    assert_int_equal(record.client, 0);
    free(text);
    close(fd);
}

static void assert_record(char *line, const char *text, struct log_record expected)
{
    struct log_record record;

    assert_true(log_record_cut(line, &record));
    assert_string_equal(line + strlen(line) - strlen(text), text);
    assert_int_equal(record.client, expected.client);
    assert_int_equal(record.is_event, expected.is_event);
    assert_int_equal(record.error, expected.error);
}

/* Also behind a text that is cut. */
static void test_records(void **state)
{
    static char longer[10000];
    int fd = open_memory();

    memset(longer, 'x', sizeof(longer) - 1);
    log_open(fd, "Server");
    log_with(LOG_ABOUT(42), "connected");
    log_with(LOG_EVENT(43, 700), "a fault");
    log_with(LOG_EVENT(44, 0), "%s", longer);
    log_open(-1, "");
    char *text = contents(fd), *second = strchr(text, '\n') + 1, *third = strchr(second, '\n') + 1;
    assert_int_equal(strlen(third), 4095);
    assert_record(text, "] connected", (struct log_record){.client = 42});
    assert_record(second, "] a fault", (struct log_record){43, true, 700});
    assert_record(third, "xxxx", (struct log_record){44, true, 0});
    free(text);
    close(fd);
}

static void test_text_that_is_no_record(void **state)
{
    static const char *const lines[] = {"text",
                                        "text\t",
                                        "text\t{\"client\":1",
                                        "text\t{\"client\":1}x",
                                        "text\t{\"error\":1}",
                                        "{\"client\":1}"};
    struct log_record record;

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        char line[64];

        snprintf(line, sizeof(line), "%s\n", lines[i]);
        assert_false(log_record_cut(line, &record));
        assert_string_equal(line, lines[i]);
    }
}

static void test_a_long_line_is_cut_but_ended(void **state)
{
    static char longer[10000];
    memset(longer, 'x', sizeof(longer) - 1);
    int fd = open_memory();
    log_open(fd, "Server");
    log_line("%s", longer);
    log_open(-1, "");
    char *text = contents(fd);
    assert_int_equal(strlen(text), 4095);
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
    close(fd);
}

static void test_a_lost_line_is_counted_and_errno_kept(void **state)
{
    uint64_t before = log_dropped();
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    log_open(full, "Server");
    errno = ENOTTY;
    log_line("lost");
    assert_int_equal(errno, ENOTTY);
    log_open(-1, "");
    assert_int_equal(log_dropped(), before + 1);
    close(full);
}

/* Before the first line that can be written again. */
static void test_a_gap_is_told_of(void **state)
{
    int full = open("/dev/full", O_WRONLY), fd = open_memory();
    int earlier = open_memory();

    log_open(earlier, "Server");
    log_line("after what other tests have lost");
    log_open(full, "Server");
    log_line("lost");
    log_line("lost");
    log_open(fd, "Server");
    log_line("kept");
    log_line("kept, too");
    log_open(-1, "");
    char *text = contents(fd);
    const char *gap = strstr(text, "2 lines are missing here");
    assert_non_null(gap);
    assert_true(gap < strstr(text, "] kept"));
    assert_null(strstr(strchr(gap, '\n'), "missing"));
    free(text);
    close(earlier);
    close(full);
    close(fd);
}

#define THREADS 4
#define LINES 500

static void *log_many(void *argument)
{
    for (int i = 0; i < LINES; i++)
        log_line("thread %d line %d end", (int)(intptr_t)argument, i);
    return NULL;
}

static void test_threads_do_not_mix_lines(void **state)
{
    pthread_t threads[THREADS];
    int fd = open_memory();
    log_open(fd, "Server");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, log_many, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    log_open(-1, "");

    char *text = contents(fd), *rest = text, *line;
    int count = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        int thread, number, length = 0;
        sscanf(strchr(line, ']'), "] thread %d line %d end%n", &thread, &number, &length);
        assert_int_equal(length, (int)strlen(strchr(line, ']')));
        count++;
    }
    assert_int_equal(count, THREADS * LINES);
    free(text);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form_of_a_line),
        cmocka_unit_test(test_a_client_cannot_forge_a_line),
        cmocka_unit_test(test_a_client_cannot_forge_a_record),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_text_that_is_no_record),
        cmocka_unit_test(test_a_long_line_is_cut_but_ended),
        cmocka_unit_test(test_a_lost_line_is_counted_and_errno_kept),
        cmocka_unit_test(test_a_gap_is_told_of),
        cmocka_unit_test(test_threads_do_not_mix_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
