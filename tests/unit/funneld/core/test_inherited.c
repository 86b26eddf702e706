/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon leaves to the program that it becomes arrives there, and nothing else is read. */
#include "inherited.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static const char data[] = "a hello\nwith\0all\xff bytes";

static bool is_closed_on_exec(int fd)
{
    return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static int open_null(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void test_everything_arrives(void **state)
{
    int lock = open_null(), one = open_null(), other = open_null(), client = open_null();
    struct list left;

    list_init(&left);
    assert_false(inherited_exists());
    assert_int_equal(inherited_add(&left, INHERITED_LOCK, lock, "", NULL, 0), 0);
    assert_int_equal(inherited_add(&left, INHERITED_LISTENER, one, "/run/a b/funnel", NULL, 0), 0);
    assert_int_equal(inherited_add(&left, INHERITED_LISTENER, other, "/run/c", NULL, 0), 0);
    assert_int_equal(inherited_add(&left, INHERITED_CLIENT, client, "", data, sizeof(data)), 0);
    assert_int_equal(inherited_leave(&left), 0);
    assert_false(is_closed_on_exec(lock) || is_closed_on_exec(client));
    /* In the process after execve() the list is new. */
    assert_int_equal(inherited_read(), 0);
    assert_true(inherited_exists());
    assert_null(getenv("FUNNEL_RELOAD"));
    assert_true(is_closed_on_exec(lock) && is_closed_on_exec(client));
    assert_int_equal(inherited_take(INHERITED_LOCK, ""), lock);
    assert_int_equal(inherited_take(INHERITED_LOCK, ""), -1);
    assert_int_equal(inherited_take(INHERITED_LISTENER, "/run/c"), other);
    struct inherited *rest = inherited_next(INHERITED_LISTENER);
    assert_int_equal(rest->fd, one);
    assert_string_equal(rest->about, "/run/a b/funnel");
    inherited_free(rest);
    struct inherited *program = inherited_next(INHERITED_CLIENT);
    assert_int_equal(program->fd, client);
    assert_int_equal(program->size, sizeof(data));
    assert_memory_equal(program->data, data, sizeof(data));
    inherited_free(program);
    assert_null(inherited_next(INHERITED_CLIENT));
    list_for_each_safe (struct inherited, item, &left, link)
        inherited_free(item);
}

/* As a file of `text` whose number is in the environment: what inherited_read() says. */
static int read_text(const char *text)
{
    char path[] = "/tmp/funnel-inherited-XXXXXX", number[16];
    int fd = mkstemp(path);

    unlink(path);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    snprintf(number, sizeof(number), "%d", fd);
    setenv("FUNNEL_RELOAD", number, 1);
    return inherited_read();
}

static void test_wrong_lists(void **state)
{
    char text[128];

    assert_int_not_equal(read_text(""), 0);
    assert_int_not_equal(read_text("something\n"), 0);
    assert_int_not_equal(read_text("funnel reload 1 1\n"), 0);
    snprintf(text, sizeof(text), "funnel reload 99 %d\n", (int)getpid());
    assert_int_not_equal(read_text(text), 0);
    snprintf(text, sizeof(text), "funnel reload 1 %d\nlock 9999 0 \n", (int)getpid());
    assert_int_not_equal(read_text(text), 0);
    snprintf(text, sizeof(text), "funnel reload 1 %d\nclient 0 500 \nshort", (int)getpid());
    assert_int_not_equal(read_text(text), 0);
    snprintf(text, sizeof(text), "funnel reload 1 %d\nclient 0 9999999999 \n", (int)getpid());
    assert_int_not_equal(read_text(text), 0);
    setenv("FUNNEL_RELOAD", "9999", 1);
    assert_int_not_equal(inherited_read(), 0);
    assert_int_equal(inherited_read(), 0); /* the variable is gone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_arrives),
        cmocka_unit_test(test_wrong_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
