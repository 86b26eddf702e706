/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that comes while the process has no descriptor for it. */
#include "http_server.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"

#define TURNS 20

static struct event_base *base;
static struct http_server *server;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char folder[] = "/tmp/http-server-XXXXXX";
static struct rlimit usual;
static int peer;
static unsigned warnings;

static void count_warning(int severity, const char *message)
{
    warnings++;
}

static void answer(struct http_request *request)
{
    http_answer(request, 200, "text/plain", NULL);
}

static void ask(void)
{
    static const char request[] = "GET / HTTP/1.0\r\n\r\n";

    peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(write(peer, request, strlen(request)), strlen(request));
}

static void limit_descriptors(rlim_t most)
{
    const struct rlimit limit = {most, usual.rlim_max};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int next_descriptor(void)
{
    int fd = open("/", O_PATH | O_CLOEXEC);

    close(fd);
    return fd;
}

static int begin_without_descriptor(void **state)
{
    if (!mkdtemp(folder) || getrlimit(RLIMIT_NOFILE, &usual))
        return -1;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    base = event_base_new();
    warnings = 0;
    event_set_log_callback(count_warning);
    if (http_server_start(base, address.sun_path, answer, NULL, &server))
        return -1;
    ask();
    limit_descriptors((rlim_t)next_descriptor());
    for (unsigned i = 0; i < TURNS; i++)
        event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    return 0;
}

static int end(void **state)
{
    limit_descriptors(usual.rlim_cur);
    http_server_stop(server);
    event_base_free(base);
    close(peer);
    rmdir(folder);
    memcpy(strrchr(folder, '-'), "-XXXXXX", sizeof("-XXXXXX"));
    return 0;
}

static bool is_answered(void)
{
    char status[16] = "";

    return recv(peer, status, sizeof(status) - 1, MSG_DONTWAIT) > 0 && strstr(status, "200");
}

/* The loop does not turn for it, and accepts it later. */
static void test_wait_for_descriptor(void **state)
{
    assert_int_equal(warnings, 0);
    limit_descriptors(usual.rlim_cur);
    while (!is_answered())
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

/* Nothing begins to listen again by itself. */
static void test_stop_meanwhile(void **state)
{
    http_server_listen(server, false);
    assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 1);
    limit_descriptors(usual.rlim_cur);
    http_server_listen(server, true);
    while (!is_answered())
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_wait_for_descriptor, begin_without_descriptor, end),
        cmocka_unit_test_setup_teardown(test_stop_meanwhile, begin_without_descriptor, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
