/* SPDX-License-Identifier: Apache-2.0 */
/* A client with two functions and two streams, whose launches the fake driver lists. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "fake_driver.h"
#include "function.h"
#include "launch_batch.h"
#include "launch_state.h"

struct scene {
    struct fixture *fixture;
    struct module module;
    struct function *function[2];
    struct stream *stream[2];
};

static inline struct function *make_function(struct module *module, uintptr_t number)
{
    static struct known_kernel known;
    struct function *function = calloc(1, sizeof(*function) + 8);

    function->module = module;
    function->known = &known;
    function->driver = (CUfunction)number;
    function->handle = number;
    function->params_size = 8;
    strcpy(function->name, number == 1 ? "one" : "two");
    return function;
}

static inline int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    void *fixture;
    int error = fixture_setup(&fixture);

    scene->fixture = fixture;
    scene->module.device = &scene->fixture->server.devices.device[0];
    for (unsigned i = 0; i < 2; i++) {
        scene->function[i] = make_function(&scene->module, i + 1);
        scene->stream[i] = fixture_stream(fixture, i + 1, CU_STREAM_NON_BLOCKING);
    }
    fake_trace();
    *state = scene;
    return error;
}

static inline int teardown(void **state)
{
    struct scene *scene = *state;
    void *fixture = scene->fixture;

    int error = fixture_teardown(&fixture);

    for (unsigned i = 0; i < 2; i++)
        free(scene->function[i]);
    free(scene);
    return error;
}

static inline CUresult launch(struct scene *scene, unsigned function, unsigned stream,
                              uint64_t parameter)
{
    const struct wire_cuLaunchKernelEx in = {
        .f = function + 1, .shape = {1}, .params = &parameter, .params_size = sizeof(parameter)};

    return serve_cuLaunchKernelEx(scene->fixture->session, &in, scene->function[function],
                                  scene->stream[stream]);
}

/* Makes `count` launches, with parameters first, first + 1 and so on, that wait together. */
static inline const char *run(struct scene *scene, unsigned count, uint64_t first)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(launch(scene, 0, 0, first + i), CUDA_SUCCESS);
    launch_batch_flush(scene->fixture->session);
    return fake_trace();
}

/* A length is wanted often enough for a graph. */
static inline void want(struct scene *scene, unsigned count)
{
    run(scene, count, 1000);
    run(scene, count, 2000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
