/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions: what the clients of a library are told of its kernels, and what is each client's own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"
#include "function.h"
#include "kernel_record.h"
#include "module_cache.h"
#include "server_module.h"

#define PTX                                           \
    ".version 8.0\n.target sm_90\n.address_size 64\n" \
    ".visible .entry k(.param .u64 p)\n{\nret;\n}\n"

static struct module modules[2];
static uint32_t page[8000 / 4];
static uint32_t next_handle;

/* Two clients' modules of one library; the clients are one session here. */
static int setup(void **state)
{
    int error = fixture_setup(state);
    struct fixture *fixture = *state;
    struct module_cache *cache = server_module_cache(&fixture->server);

    next_handle = 0;
    for (int i = 0; i < 2; i++) {
        const struct image_request image = {.session = fixture->session,
                                            .device = &fixture->server.devices.device[0],
                                            .image = fixture_image(fixture, PTX)};
        struct image_log log = {0};
        modules[i] = (struct module){.device = image.device};
        list_init(&modules[i].functions);
        assert_int_equal(module_cache_get(cache, &image, &modules[i].cached, &log), CUDA_SUCCESS);
        stored_image_unref(image.image);
    }
    fake_trace();
    return error;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 2; i++) {
        list_for_each_safe (struct function, function, &modules[i].functions, link)
            function_end(fixture->session, function);
        module_cache_put(server_module_cache(&fixture->server), modules[i].cached);
    }
    return fixture_teardown(state);
}

static CUresult try_find(struct fixture *fixture, int client, const char *name, uint32_t first,
                         struct wire_cuLibraryGetKernel_reply *ret_out)
{
    const struct wire_cuLibraryGetKernel in = {
        .f = fixture_handle(WIRE_FUNCTION, next_handle++), .first = first, .name = name};

    *ret_out =
        (struct wire_cuLibraryGetKernel_reply){.layout = page, .layout_capacity = sizeof(page)};
    return serve_cuLibraryGetKernel(fixture->session, &in, &modules[client], ret_out);
}

static struct wire_cuLibraryGetKernel_reply find(struct fixture *fixture, int client,
                                                 const char *name, uint32_t first)
{
    struct wire_cuLibraryGetKernel_reply out;

    assert_int_equal(try_find(fixture, client, name, first, &out), CUDA_SUCCESS);
    assert_int_equal(out.param_count, 1);
    assert_int_equal(page[1], 8);
    return out;
}

/* The names of the kernels in a reply, each followed by a space. */
static const char *told(const struct wire_cuLibraryGetKernel_reply *out)
{
    static char names[8000];
    const char *at = (const char *)page + 8;
    size_t size = out->layout_size - 8, step;
    struct kernel_facts facts;

    for (names[0] = '\0'; kernel_record_read(at, size, &facts, &step); at += step, size -= step) {
        strcat(names, facts.name);
        strcat(names, " ");
    }
    assert_int_equal(size, 0);
    return names;
}

static struct function *last_function(int client)
{
    struct function *last = NULL;

    list_for_each (struct function, function, &modules[client].functions, link)
        last = function;
    assert_non_null(last);
    return last;
}

static void the_next_client_is_told_of_all(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;

    find(*state, 0, "3", 0);
    find(*state, 0, "1", 1);
    out = find(*state, 0, "2", 2);
    assert_string_equal(told(&out), "2 ");
    assert_string_equal(fake_trace(), "kernel k3; kernel k1; kernel k2; ");
    out = find(*state, 1, "1", 0);
    assert_string_equal(told(&out), "3 1 2 ");
    assert_int_equal(out.next, 3);
    assert_string_equal(fake_trace(), ""); /* and the driver is not asked */
}

static CUresult must_not_load(CUfunction *ret_function, CUkernel kernel)
{
    (void)ret_function, (void)kernel;
    fail_msg("the kernel is loaded");
    return CUDA_SUCCESS;
}

static CUresult look_for(struct fixture *fixture, const char *name, uint32_t *ret_known)
{
    const struct wire_fnKernelFind in = {.name = name};
    struct wire_fnKernelFind_reply out = {0};
    CUresult result = serve_fnKernelFind(fixture->session, &in, &modules[1], &out);

    *ret_known = out.known;
    return result;
}

static void looking_for_a_kernel_loads_none(void **state)
{
    uint32_t known;

    find(*state, 0, "3", 0);
    fake_trace();
    driver.cuKernelGetFunction = must_not_load;
    assert_int_equal(look_for(*state, "3", &known), CUDA_SUCCESS);
    assert_int_equal(known, 1);
    assert_string_equal(fake_trace(), "");
    assert_int_equal(look_for(*state, "4", &known), CUDA_SUCCESS);
    assert_int_equal(known, 0);
    assert_string_equal(fake_trace(), "kernel k4; ");
    assert_int_equal(look_for(*state, "none", &known), CUDA_ERROR_NOT_FOUND);
}

static void a_client_without_space_gets_no_others(void **state)
{
    struct wire_cuLibraryGetKernel_reply out = find(*state, 0, "3", UINT32_MAX);

    assert_string_equal(told(&out), "");
}

static void many_kernels_come_in_pages(void **state)
{
    struct wire_cuLibraryGetKernel_reply out = {0};
    unsigned replies = 0, kernels = 0;
    char name[16];

    for (int i = 1; i <= 200; i++) {
        snprintf(name, sizeof(name), "%d", i);
        find(*state, 0, name, UINT32_MAX);
    }
    while (out.next < 200) {
        uint32_t before = out.next;
        out = find(*state, 1, "200", before);
        assert_true(out.next > before);
        for (const char *at = told(&out); (at = strchr(at, ' ')); at++)
            kernels++;
        replies++;
    }
    assert_int_equal(kernels, 200);
    assert_in_range(replies, 2, 4);
}

static void a_name_that_is_too_long_comes_alone(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;
    char name[4000];

    snprintf(name, sizeof(name), "1%03990d", 0);
    name[19] = '\0'; /* a number still, and then the rest of the name */
    memset(name + 19, 'x', 3900);
    find(*state, 0, name, 0);
    find(*state, 0, "2", 0);
    out = find(*state, 1, name, 0);
    assert_string_equal(told(&out), "2 ");
    assert_int_equal(out.next, 2);
}

static void unknown_kernels_are_not_found(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;

    find(*state, 0, "1", 0);
    assert_int_equal(try_find(*state, 0, "none", 0, &out), CUDA_ERROR_NOT_FOUND);
}

static CUresult enter(struct fixture *fixture, int client, uint32_t kernel)
{
    const struct wire_fnFunctionEnter in = {.f = fixture_handle(WIRE_FUNCTION, next_handle++),
                                            .kernel = kernel};

    return serve_fnFunctionEnter(fixture->session, &in, &modules[client]);
}

static void a_kernel_is_entered_by_its_number(void **state)
{
    find(*state, 0, "5", 0);
    find(*state, 0, "6", 0);
    fake_trace();
    assert_int_equal(enter(*state, 1, 1), CUDA_SUCCESS);
    assert_ptr_equal(last_function(1)->driver, (CUfunction)6);
    assert_string_equal(last_function(1)->name, "6");
    assert_int_equal(last_function(1)->params_size, 8);
    assert_string_equal(fake_trace(), "");
    assert_int_equal(enter(*state, 1, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(enter(*state, 1, UINT32_MAX), CUDA_ERROR_INVALID_VALUE);
}

static CUresult set(struct fixture *fixture, struct function *function,
                    CUfunction_attribute attribute, int value)
{
    const struct wire_cuFuncSetAttribute in = {.attribute = attribute, .value = value};

    return serve_cuFuncSetAttribute(fixture->session, &in, function);
}

static CUresult set_shared_bytes(struct fixture *fixture, struct function *function, int value)
{
    return set(fixture, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value);
}

static int shared_bytes(struct fixture *fixture, struct function *function)
{
    const struct wire_cuFuncGetAttribute in = {.attribute =
                                                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES};
    struct wire_cuFuncGetAttribute_reply out = {0};

    serve_cuFuncGetAttribute(fixture->session, &in, function, &out);
    return out.value;
}

/* Two clients use the same function: what one of them sets, the other does not see. */
static void attributes_are_each_clients_own(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;

    fake.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    find(*state, 0, "1", 0);
    fake_trace();
    set_shared_bytes(*state, last_function(0), 90000);
    assert_string_equal(fake_trace(), "attribute f1 8 90000; ");
    out = find(*state, 1, "1", 0);
    assert_int_equal(out.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES], 49152);
    assert_int_equal(shared_bytes(*state, last_function(1)), 49152);
    set_shared_bytes(*state, last_function(1), 60000);
    assert_string_equal(fake_trace(), "");
    assert_int_equal(shared_bytes(*state, last_function(1)), 60000);
    assert_int_equal(shared_bytes(*state, last_function(0)), 90000);
}

static CUresult get_slowly(int *ret_value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    *ret_value = __atomic_load_n(&fake.attributes[attribute], __ATOMIC_RELAXED);
    usleep(2000);
    return CUDA_SUCCESS;
}

static CUresult set_lower_last(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function;
    usleep(value < 90000 ? 4000 : 0);
    __atomic_store_n(&fake.attributes[attribute], value, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

static void *set_lower(void *state)
{
    assert_int_equal(set_shared_bytes(state, last_function(1), 60000), CUDA_SUCCESS);
    return NULL;
}

/* Both clients see the bound before either has raised it. */
static void the_higher_of_two_bounds_stays(void **state)
{
    int *bound = &fake.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    pthread_t other;

    *bound = 49152;
    find(*state, 0, "1", 0);
    find(*state, 1, "1", 0);
    driver.cuFuncGetAttribute = get_slowly;
    driver.cuFuncSetAttribute = set_lower_last;
    assert_int_equal(pthread_create(&other, NULL, set_lower, *state), 0);
    assert_int_equal(set_shared_bytes(*state, last_function(0), 90000), CUDA_SUCCESS);
    pthread_join(other, NULL);
    assert_int_equal(*bound, 90000);
    *bound = 0;
}

/* The driver's function has one carveout: that of the client whose launch comes next. */
static void launches_go_by_their_clients_carveout(void **state)
{
    const CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;

    fake.attributes[attribute] = -1;
    find(*state, 0, "1", 0);
    find(*state, 1, "1", 0);
    fake_trace();
    assert_int_equal(set(*state, last_function(0), attribute, 50), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "attribute f1 9 50; ");
    function_prefer(last_function(0));
    assert_string_equal(fake_trace(), "");
    function_prefer(last_function(1));
    assert_string_equal(fake_trace(), "attribute f1 9 -1; ");
    function_prefer(last_function(1));
    assert_string_equal(fake_trace(), "");
    function_prefer(last_function(0));
    assert_string_equal(fake_trace(), "attribute f1 9 50; ");
    fake.attributes[attribute] = 0;
}

/* Clusters are no hints, so they go with each launch, and never to the driver's function. */
static void clusters_are_each_clients_own(void **state)
{
    const CUfunction_attribute width = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
    const CUfunction_attribute policy = CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    CUlaunchAttribute own[FUNCTION_LAUNCH_ATTRIBUTES];

    find(*state, 0, "1", 0);
    find(*state, 1, "1", 0);
    fake_trace();
    for (unsigned side = 0; side < 3; side++)
        assert_int_equal(set(*state, last_function(0), width + side, 2 + (int)side), CUDA_SUCCESS);
    assert_int_equal(set(*state, last_function(0), policy, 2), CUDA_SUCCESS);
    assert_string_equal(fake_trace(), "");
    assert_int_equal(function_launch_attributes(last_function(1), own), 0);
    assert_false(last_function(1)->has_own_attributes);
    assert_int_equal(function_launch_attributes(last_function(0), own), 2);
    assert_true(last_function(0)->has_own_attributes);
    assert_int_equal(own[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    assert_int_equal(own[0].value.clusterDim.x, 2);
    assert_int_equal(own[0].value.clusterDim.z, 4);
    assert_int_equal(own[1].value.clusterSchedulingPolicyPreference, 2);
    for (unsigned side = 0; side < 3; side++)
        assert_int_equal(set(*state, last_function(0), width + side, 0), CUDA_SUCCESS);
    assert_int_equal(set(*state, last_function(0), policy, 0), CUDA_SUCCESS);
    assert_false(last_function(0)->has_own_attributes);
    assert_int_equal(set(*state, last_function(0), policy, 3), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(set(*state, last_function(0), width, -1), CUDA_ERROR_INVALID_VALUE);
}

/* As NVIDIA's driver has it. */
static void a_cluster_of_the_code_stays(void **state)
{
    const CUfunction_attribute width = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;

    fake.attributes[width] = 4;
    find(*state, 0, "1", 0);
    fake.attributes[width] = 0;
    assert_int_equal(set(*state, last_function(0), width, 2), CUDA_ERROR_NOT_PERMITTED);
    assert_false(last_function(0)->has_own_attributes);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_next_client_is_told_of_all),        CASE(looking_for_a_kernel_loads_none),
        CASE(a_client_without_space_gets_no_others), CASE(many_kernels_come_in_pages),
        CASE(a_name_that_is_too_long_comes_alone),   CASE(unknown_kernels_are_not_found),
        CASE(a_kernel_is_entered_by_its_number),     CASE(attributes_are_each_clients_own),
        CASE(the_higher_of_two_bounds_stays),        CASE(launches_go_by_their_clients_carveout),
        CASE(clusters_are_each_clients_own),         CASE(a_cluster_of_the_code_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
