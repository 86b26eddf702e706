/* SPDX-License-Identifier: Apache-2.0 */
/* Which memsets go to the driver among the launches of a training. */
#include "attach.h"
#include "fill_kernel.h"
#include "launch_scene.h"
#include "memory.h"

#define FILL_KERNEL 8
#define OWN WINDOW_FIRST
#define OWN_SIZE 65536ull

static int setup_memory(void **state)
{
    const struct granule own = {.kind = GRANULE_SHARED, .address = OWN, .size = OWN_SIZE, .fd = -1};

    if (setup(state))
        return -1;
    struct scene *scene = *state;
    struct device *device = &scene->fixture->server.devices.device[0];
    scene->fixture->server.devices.stride = 1ull << 36;
    device->launch->fill_kernel = make_function(NULL, FILL_KERNEL);
    device->launch->fill_kernel->known = NULL; /* of no client */
    device->launch->fill_kernel->params_size = 20;
    atomic_store(&scene->fixture->session->gathers, true);
    return memory_allow(scene->fixture->session, &own);
}

static int teardown_memory(void **state)
{
    struct scene *scene = *state;

    memory_release_all(scene->fixture->session);
    fill_kernel_unload(&scene->fixture->server.devices.device[0]);
    return teardown(state);
}

static struct wire_fnMemset words(uint64_t count)
{
    return (struct wire_fnMemset){
        .dst = OWN, .value = 7, .element_size = 4, .width = count, .height = 1};
}

/* With a launch before and behind it. What the driver has got before the second one goes. */
static const char *fill_between_launches(struct scene *scene, struct wire_fnMemset in)
{
    struct session *session = scene->fixture->session;

    launch(scene, 0, 0, 1);
    assert_int_equal(serve_fnMemset(session, &in, scene->stream[0]), CUDA_SUCCESS);
    launch(scene, 0, 0, 1);
    return fake_trace();
}

static void a_memset_goes_with_the_launches(void **state)
{
    struct scene *scene = *state;

    assert_string_equal(fill_between_launches(scene, words(16)), "");
    launch_batch_flush(scene->fixture->session);
    assert_string_equal(fake_trace(), "launch s1 f1 0 8; launch s1 f8 0 20; launch s1 f1 0 8; ");
}

static struct {
    uint64_t dst, words;
    uint32_t value;
} filled;
static CUlaunchConfig filled_by;

static CUresult note_fill(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    memcpy(&filled, extra[1], 20);
    filled_by = *config;
    return CUDA_SUCCESS;
}

static void fill(struct scene *scene, struct wire_fnMemset in)
{
    driver.cuLaunchKernelEx = note_fill;
    assert_int_equal(serve_fnMemset(scene->fixture->session, &in, scene->stream[0]), CUDA_SUCCESS);
    launch_batch_flush(scene->fixture->session);
}

static void the_kernel_fills_words_with_elements(void **state)
{
    struct wire_fnMemset in = words(16384);

    fill(*state, in);
    assert_true(filled.dst == OWN && filled.words == 16384 && filled.value == 7);
    assert_int_equal(filled_by.gridDimX, 64);
    assert_int_equal(filled_by.blockDimX, 256);
    in.element_size = 2;
    in.value = 0xabcd1234;
    fill(*state, in);
    assert_true(filled.words == 8192 && filled.value == 0x12341234);
    in.element_size = 1;
    in.width = 4;
    fill(*state, in);
    assert_true(filled.words == 1 && filled.value == 0x34343434);
    assert_int_equal(filled_by.gridDimX, 1);
}

static void assert_made_by_driver(struct scene *scene, struct wire_fnMemset in)
{
    assert_int_equal(strncmp(fill_between_launches(scene, in), "launch s1 f1 0 8; fill", 22), 0);
    launch_batch_flush(scene->fixture->session);
    fake_trace();
}

static void the_driver_makes_the_others(void **state)
{
    struct scene *scene = *state;
    struct wire_fnMemset in = words(16);

    atomic_store(&scene->fixture->session->gathers, false);
    assert_made_by_driver(scene, in);
    atomic_store(&scene->fixture->session->gathers, true);
    in.seq = 1;
    assert_made_by_driver(scene, in);
    struct function *kernel = scene->fixture->server.devices.device[0].launch->fill_kernel;
    scene->fixture->server.devices.device[0].launch->fill_kernel = NULL;
    assert_made_by_driver(scene, words(16));
    scene->fixture->server.devices.device[0].launch->fill_kernel = kernel;
}

static void only_rows_of_words_are_filled(void **state)
{
    struct scene *scene = *state;
    struct session *session = scene->fixture->session;
    struct wire_fnMemset rows = words(16), odd = words(16), far = words(16), none = words(0),
                         vast = words(1 << 21);

    rows.height = 2;
    odd.dst += 2;
    far.dst = OWN + (1ull << 50);
    assert_false(fill_kernel_add(session, &rows, scene->stream[0]));
    assert_false(fill_kernel_add(session, &odd, scene->stream[0]));
    assert_false(fill_kernel_add(session, &far, scene->stream[0]));
    assert_false(fill_kernel_add(session, &none, scene->stream[0]));
    assert_false(fill_kernel_add(session, &vast, scene->stream[0]));
    odd = words(3);
    odd.element_size = 1;
    assert_false(fill_kernel_add(session, &odd, scene->stream[0]));
}

static void memory_of_others_is_not_filled(void **state)
{
    struct scene *scene = *state;
    struct wire_fnMemset in = words(OWN_SIZE / 4 + 1);

    launch(scene, 0, 0, 1);
    assert_int_equal(serve_fnMemset(scene->fixture->session, &in, scene->stream[0]),
                     CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(fake_trace(), "launch s1 f1 0 8; ");
}

int main(void)
{
#define MEMORY(name) cmocka_unit_test_setup_teardown(name, setup_memory, teardown_memory)
    const struct CMUnitTest tests[] = {
        MEMORY(a_memset_goes_with_the_launches), MEMORY(the_kernel_fills_words_with_elements),
        MEMORY(the_driver_makes_the_others),     MEMORY(only_rows_of_words_are_filled),
        MEMORY(memory_of_others_is_not_filled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
