/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch passes to the driver. */
#include <stdlib.h>
#include <string.h>

#include "cuda_error.h"
#include "fake_driver.h"
#include "function.h"
#include "launch_record.h"
#include "launch_state.h"

static CUresult launch(struct fixture *fixture, const CUlaunchAttribute *attributes,
                       uint32_t attributes_size, uint32_t params_size)
{
    static const unsigned char params[64];
    static struct known_kernel known;
    struct module module = {.device = &fixture->server.devices.device[0]};
    struct function *function = calloc(1, sizeof(*function) + 8);
    struct stream *stream = fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    const struct wire_cuLaunchKernelEx in = {.f = 1,
                                             .shape = {1},
                                             .attributes = attributes,
                                             .attributes_size = attributes_size,
                                             .params = params,
                                             .params_size = params_size};

    function->module = &module;
    function->known = &known;
    function->handle = 1;
    function->driver = (CUfunction)5;
    function->params_size = 16;
    strcpy(function->name, "kernel");
    fake_trace();
    CUresult result = serve_cuLaunchKernelEx(fixture->session, &in, function, stream);
    launch_batch_flush(fixture->session);
    free(function);
    return result;
}

static void parameters_go_through(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(launch(fixture, NULL, 0, 16), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "launch s1 f5 0 16; ");
    assert_string_equal(fixture->session->launch->last_kernel, "kernel");
    assert_int_equal(launch_count(fixture->session), 1);
}

static void short_parameters_are_refused(void **state)
{
    assert_int_equal(launch(*state, NULL, 0, 15), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "");
}

static void hints_are_dropped(void **state)
{
    CUlaunchAttribute attributes[] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE},
                                      {.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW},
                                      {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION}};

    assert_int_equal(launch(*state, attributes, sizeof(attributes), 16), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "launch s1 f5 2 16; ");
}

static void attributes_with_handles_are_refused(void **state)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};

    assert_int_equal(launch(*state, &attribute, sizeof(attribute), 16), CUDA_ERROR_NOT_SUPPORTED);
    attribute.id = (CUlaunchAttributeID)999;
    assert_int_equal(launch(*state, &attribute, sizeof(attribute), 16), CUDA_ERROR_NOT_SUPPORTED);
}

static void truncated_attributes_are_refused(void **state)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};

    assert_int_equal(launch(*state, &attribute, sizeof(attribute) - 1, 16),
                     CUDA_ERROR_INVALID_VALUE);
}

static void only_lost_contexts_are_fatal(void **state)
{
    (void)state;
    assert_true(cuda_error_is_fatal(CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_true(cuda_error_is_fatal(CUDA_ERROR_LAUNCH_FAILED));
    assert_false(cuda_error_is_fatal(CUDA_SUCCESS));
    assert_false(cuda_error_is_fatal(CUDA_ERROR_INVALID_VALUE));
    assert_false(cuda_error_is_fatal(CUDA_ERROR_OUT_OF_MEMORY));
    assert_false(cuda_error_is_fatal(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
    assert_false(cuda_error_is_fatal(CUDA_ERROR_NOT_READY));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(parameters_go_through),
        CASE(short_parameters_are_refused),
        CASE(hints_are_dropped),
        CASE(attributes_with_handles_are_refused),
        CASE(truncated_attributes_are_refused),
        CASE(only_lost_contexts_are_fatal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
