/* SPDX-License-Identifier: Apache-2.0 */
/* Device printf output: written where a thread synchronizes, kept where it only asks. */
#include "client_printf.h"

#include <stdio.h>
#include <sys/mman.h>

#include "client_fixture.h"
#include "client_prototypes.h"

static struct {
    int terminal, file; /* what stdout was, and what it is during a test */
    char read[4096];
} output;

static int setup(void **state)
{
    fflush(stdout);
    output.terminal = dup(STDOUT_FILENO);
    output.file = memfd_create("output", 0);
    dup2(output.file, STDOUT_FILENO);
    return fixture_setup(state);
}

static int teardown(void **state)
{
    fflush(stdout);
    dup2(output.terminal, STDOUT_FILENO);
    close(output.terminal);
    close(output.file);
    return fixture_teardown(state);
}

static void print(const char *text)
{
    assert_int_equal(channel_server_put_output(fixture.server, OUTPUT_STDOUT, text, strlen(text)),
                     strlen(text));
}

static const char *written(void)
{
    ssize_t size = pread(output.file, output.read, sizeof(output.read) - 1, 0);

    output.read[size > 0 ? size : 0] = '\0';
    return output.read;
}

static void test_synchronizing_writes(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    print("hello\n");
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    assert_string_equal(written(), "hello\n");
}

static void test_asking_keeps_for_the_next_that_synchronizes(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    print("first\n");
    assert_int_equal(client_cuStreamQuery((CUstream)stream->handle), CUDA_SUCCESS);
    assert_string_equal(written(), "");
    print("second\n");
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    assert_string_equal(written(), "first\nsecond\n");
}

static void test_output_before_an_error_is_written(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    stream_begin(stream);
    stream_end();
    print("last\n");
    channel_server_fail(fixture.server, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(stream_synchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_string_equal(written(), "last\n");
}

static void test_new_client_does_not_write_what_another_kept(void **state)
{
    print("of the parent\n");
    printf_output_take();
    printf_output_init();
    printf_output_write();
    assert_string_equal(written(), "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_synchronizing_writes),
        CASE(test_asking_keeps_for_the_next_that_synchronizes),
        CASE(test_output_before_an_error_is_written),
        CASE(test_new_client_does_not_write_what_another_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
