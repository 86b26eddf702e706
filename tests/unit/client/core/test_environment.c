/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment means to the client. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_log.h"
#include "environment.h"

static struct device_record records[3] = {
    {.uuid = {0x11, 0x22, 0x33}},
    {.uuid = {0x11, 0x99}},
    {.uuid = {0xab}},
};

static int visible(const char *list, uint32_t *indices)
{
    return environment_visible_devices(list, records, 3, indices);
}

static void test_no_list_shows_all_devices(void **state)
{
    uint32_t indices[3];

    assert_int_equal(visible(NULL, indices), 3);
    assert_int_equal(indices[2], 2);
}

static void test_a_list_orders_and_hides(void **state)
{
    uint32_t indices[3];

    assert_int_equal(visible("2,0", indices), 2);
    assert_int_equal(indices[0], 2);
    assert_int_equal(indices[1], 0);
    assert_int_equal(visible("", indices), 0);
    assert_int_equal(visible("-1", indices), 0);
}

static void test_a_list_ends_at_the_first_wrong_entry(void **state)
{
    uint32_t indices[3];

    assert_int_equal(visible("1,7,0", indices), 1);
    assert_int_equal(visible("1,x", indices), 1);
    assert_int_equal(visible("1,1", indices), 0);
}

static void test_devices_by_uuid(void **state)
{
    uint32_t indices[3];

    assert_int_equal(visible("GPU-ab", indices), 1);
    assert_int_equal(indices[0], 2);
    assert_int_equal(visible("GPU-1199,GPU-112233", indices), 2);
    assert_int_equal(indices[0], 1);
    assert_int_equal(indices[1], 0);
    assert_int_equal(visible("GPU-ff", indices), 0);
}

static void test_limits(void **state)
{
    struct hello hello = {0};

    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "33.5", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
    setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G,2=512MB,99=1G,GPU-ab=2G", 1);
    environment_limits(&hello);
    assert_string_equal(hello.named_limits[0].device, "GPU-ab");
    assert_int_equal(hello.named_limits[0].bytes, UINT64_C(2) << 30);
    assert_string_equal(hello.named_limits[1].device, "");
    assert_int_equal(hello.sm_centipercent, 3350);
    assert_int_equal(hello.priority, 1);
    assert_int_equal(hello.memory_limit[0], UINT64_C(1) << 30);
    assert_int_equal(hello.memory_limit[1], 0);
    assert_int_equal(hello.memory_limit[2], UINT64_C(512) << 20);
}

static void test_wrong_limits_are_not_asked_for(void **state)
{
    struct hello hello = {0};

    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "-3", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "9", 1);
    setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "nonsense", 1);
    environment_limits(&hello);
    assert_int_equal(hello.sm_centipercent, 0);
    assert_int_equal(hello.priority, HELLO_PRIORITY_UNSET);
    assert_int_equal(hello.memory_limit[0], 0);
}

static const char *const limit_variables[] = {
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_CLIENT_PRIORITY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_DEVICE_SM_LIMIT",
    "CUDA_DEVICE_MEMORY_LIMIT",
    "CUDA_DEVICE_MEMORY_LIMIT_0",
    "CUDA_DEVICE_MEMORY_LIMIT_1",
    "GPU_MEMORY_LIMIT",
    "CUDA_DEVICE_SM_LIMIT_0",
    "CUDA_DEVICE_SM_LIMIT_3",
    "GPU_CORE_UTILIZATION_POLICY",
    "CUDA_DISABLE_CONTROL",
    "CUDA_TASK_PRIORITY",
    "FUNNEL_SHOW_LIMIT",
};

static void forget_limits(void)
{
    for (size_t i = 0; i < sizeof(limit_variables) / sizeof(*limit_variables); i++)
        unsetenv(limit_variables[i]);
}

static void test_limits_of_schedulers(void **state)
{
    struct hello hello = {0};

    forget_limits();
    setenv("CUDA_DEVICE_SM_LIMIT", "30", 1);
    setenv("CUDA_DEVICE_MEMORY_LIMIT_1", "3000m", 1);
    setenv("CUDA_DEVICE_MEMORY_LIMIT", "1g", 1);
    environment_limits(&hello);
    assert_int_equal(hello.sm_centipercent, 3000);
    assert_int_equal(hello.memory_limit[0], UINT64_C(1) << 30);
    assert_int_equal(hello.memory_limit[1], UINT64_C(3000) << 20);
    forget_limits();
    hello = (struct hello){0};
    setenv("GPU_MEMORY_LIMIT", "1073741824", 1);
    setenv("CUDA_DEVICE_SM_LIMIT", "100", 1);
    environment_limits(&hello);
    assert_int_equal(hello.sm_centipercent, 0);
    assert_int_equal(hello.memory_limit[31], UINT64_C(1) << 30);
}

static struct hello limits_with(const char *variable, const char *value)
{
    struct hello hello = {0};

    setenv(variable, value, 1);
    environment_limits(&hello);
    return hello;
}

/* As HAMi's library reads them; and a container that is exempt has their variables, too. */
static void test_other_variables_of_hami(void **state)
{
    forget_limits();
    setenv("CUDA_DEVICE_SM_LIMIT", "50", 1);
    setenv("CUDA_DEVICE_SM_LIMIT_0", "40", 1);
    assert_int_equal(limits_with("CUDA_DEVICE_SM_LIMIT_3", "20").sm_centipercent, 2000);
    assert_int_equal(limits_with("GPU_CORE_UTILIZATION_POLICY", "default").sm_centipercent, 2000);
    assert_int_equal(limits_with("GPU_CORE_UTILIZATION_POLICY", "disable").sm_centipercent, 0);
    unsetenv("GPU_CORE_UTILIZATION_POLICY");
    assert_int_equal(limits_with("CUDA_TASK_PRIORITY", "1").priority, 1);
    setenv("CUDA_DEVICE_MEMORY_LIMIT_0", "3000m", 1);
    assert_int_equal(limits_with("CUDA_DISABLE_CONTROL", "false").memory_limit[0], 3000ull << 20);
    const struct hello exempt = limits_with("CUDA_DISABLE_CONTROL", "true");
    assert_int_equal(exempt.memory_limit[0], 0);
    assert_int_equal(exempt.sm_centipercent, 0);
    assert_int_equal(exempt.priority, HELLO_PRIORITY_UNSET);
    assert_int_equal(exempt.totals, HELLO_TOTALS_UNSET);
    assert_int_equal(limits_with("GPU_MEMORY_LIMIT", "1g").memory_limit[0], 1 << 30);
    forget_limits();
}

/* What a scheduler gives a container of two of three devices, the second one first. */
static void test_devices_of_a_container(void **state)
{
    const char *const others[] = {"all", "0,1", "", "GPU-ab,MIG-2"};
    struct hello hello;
    uint32_t indices[3];

    forget_limits();
    setenv("NVIDIA_VISIBLE_DEVICES", "GPU-ab,GPU-1122", 1);
    assert_int_equal(visible(NULL, indices), 2);
    assert_int_equal(indices[0], 0);
    assert_int_equal(indices[1], 2);
    assert_int_equal(visible("1", indices), 1);
    assert_int_equal(indices[0], 2);
    assert_int_equal(visible("GPU-1122", indices), 1);
    assert_int_equal(visible("GPU-1199", indices), 0);
    assert_int_equal(visible("2", indices), 0);
    setenv("CUDA_DEVICE_MEMORY_LIMIT_0", "3000m", 1);
    hello = limits_with("CUDA_DEVICE_MEMORY_LIMIT_1", "1g");
    assert_string_equal(hello.named_limits[0].device, "GPU-ab");
    assert_int_equal(hello.named_limits[0].bytes, UINT64_C(3000) << 20);
    assert_string_equal(hello.named_limits[1].device, "GPU-1122");
    assert_int_equal(hello.memory_limit[0], 0);
    assert_int_equal(hello.totals, HELLO_TOTALS_LIMIT);
    hello = limits_with("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2G");
    assert_int_equal(hello.named_limits[0].bytes, 0);
    forget_limits();
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        setenv("NVIDIA_VISIBLE_DEVICES", others[i], 1);
        assert_int_equal(visible(NULL, indices), 3);
    }
    setenv("NVIDIA_VISIBLE_DEVICES", "GPU-ffffffff", 1);
    assert_int_equal(visible(NULL, indices), 0);
    unsetenv("NVIDIA_VISIBLE_DEVICES");
}

/* Totals show the limits of schedulers, as these do themselves, and others where it is said. */
static void test_variables_of_shown_totals(void **state)
{
    forget_limits();
    assert_int_equal(limits_with("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2G").totals,
                     HELLO_TOTALS_UNSET);
    assert_int_equal(limits_with("GPU_MEMORY_LIMIT", "0").totals, HELLO_TOTALS_UNSET);
    assert_int_equal(limits_with("GPU_MEMORY_LIMIT", "1g").totals, HELLO_TOTALS_LIMIT);
    assert_int_equal(limits_with("FUNNEL_SHOW_LIMIT", "0").totals, HELLO_TOTALS_DEVICE);
    unsetenv("GPU_MEMORY_LIMIT");
    assert_int_equal(limits_with("FUNNEL_SHOW_LIMIT", "1").totals, HELLO_TOTALS_LIMIT);
    forget_limits();
}

/* What the program's own MPS variables say comes first. */
static void test_limits_of_mps_before_schedulers(void **state)
{
    struct hello hello = {0};

    forget_limits();
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "80", 1);
    setenv("CUDA_DEVICE_SM_LIMIT", "30", 1);
    setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2G", 1);
    setenv("GPU_MEMORY_LIMIT", "1g", 1);
    environment_limits(&hello);
    assert_int_equal(hello.sm_centipercent, 8000);
    assert_int_equal(hello.memory_limit[0], UINT64_C(2) << 30);
    assert_int_equal(hello.memory_limit[1], UINT64_C(1) << 30);
    forget_limits();
}

/* Whether the log of the limits that are read now holds `expected`, or is empty if that is NULL. */
static bool logs(const char *variable, const char *value, const char *expected)
{
    static char path[] = "/tmp/funnel-environment-XXXXXX";
    static int file = -1;
    struct hello hello = {0};
    char text[1024] = "";
    ssize_t size;

    if (file < 0 && (file = mkstemp(path)) >= 0) {
        setenv("FUNNEL_LOG", path, 1);
        client_log_open();
        unlink(path);
    }

    forget_limits();
    setenv(variable, value, 1);
    environment_limits(&hello);
    size = read(file, text, sizeof(text) - 1);
    return expected ? size > 0 && strstr(text, expected) : size <= 0;
}

static void test_values_that_are_ignored_are_logged(void **state)
{
    const char *share = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
    const char *memory = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

    assert_true(logs(share, "abc", "\"abc\" is not a percentage above 0 and at most 100; ignored"));
    assert_true(logs(share, "50x", "\"50x\" is not"));
    assert_true(logs(share, "0x20", "\"0x20\" is not"));
    assert_true(logs(share, "101", "\"101\" is not"));
    assert_true(logs(share, "50", NULL));
    assert_true(logs(share, "", NULL));
    assert_true(logs(memory, "foo", "\"foo\" is not a list of DEVICE=SIZE"));
    assert_true(logs(memory, "0=1", "\"0=1\" is not"));
    assert_true(logs(memory, "0=1Gx", "\"0=1Gx\" is not"));
    assert_true(logs(memory, "0=1G,1=2", "\"0=1G,1=2\" is not"));
    assert_true(logs(memory, "0=1G,GPU-ab=512MB", NULL));
    assert_true(logs("CUDA_MPS_CLIENT_PRIORITY", "high", "\"high\" is not 0 or 1; ignored"));
    assert_true(logs("CUDA_DEVICE_SM_LIMIT", "101", "\"101\" is not a percentage of 0 to 100"));
    assert_true(logs("CUDA_DEVICE_SM_LIMIT", "0", NULL));
    assert_true(logs("GPU_MEMORY_LIMIT", "1x", "\"1x\" is not a size"));
    assert_true(logs("CUDA_DEVICE_MEMORY_LIMIT", "0", NULL));
    assert_true(logs("CUDA_DEVICE_MEMORY_LIMIT_1", "0m", NULL));
    assert_true(logs("CUDA_DEVICE_MEMORY_LIMIT_1", "m", "\"m\" is not a size"));
    assert_true(logs("CUDA_TASK_PRIORITY", "2", "\"2\" is not 0 or 1"));
}

static void test_socket_path(void **state)
{
    char path[64];

    setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/here", 1);
    assert_int_equal(environment_socket_path(0, path, sizeof(path)), 1);
    assert_string_equal(path, "/tmp/here/funnel");
    assert_int_equal(environment_socket_path(1, path, sizeof(path)), 0);
    assert_int_equal(environment_socket_path(0, path, 8), -ENAMETOOLONG);
    assert_false(environment_system_socket_path(path, sizeof(path)));
}

static void test_several_directories(void **state)
{
    char path[64];

    setenv("CUDA_MPS_PIPE_DIRECTORY", ":/tmp/a::b:", 1);
    assert_int_equal(environment_socket_path(0, path, sizeof(path)), 1);
    assert_string_equal(path, "/tmp/a/funnel");
    assert_int_equal(environment_socket_path(1, path, sizeof(path)), 1);
    assert_string_equal(path, "b/funnel");
    assert_int_equal(environment_socket_path(2, path, sizeof(path)), 0);
    assert_false(environment_system_socket_path(path, sizeof(path)));
    setenv("CUDA_MPS_PIPE_DIRECTORY", ":", 1);
    assert_int_equal(environment_socket_path(0, path, sizeof(path)), 0);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    assert_int_equal(environment_socket_path(0, path, sizeof(path)), 1);
    assert_int_equal(environment_socket_path(1, path, sizeof(path)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_list_shows_all_devices),
        cmocka_unit_test(test_a_list_orders_and_hides),
        cmocka_unit_test(test_a_list_ends_at_the_first_wrong_entry),
        cmocka_unit_test(test_devices_by_uuid),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_wrong_limits_are_not_asked_for),
        cmocka_unit_test(test_limits_of_schedulers),
        cmocka_unit_test(test_other_variables_of_hami),
        cmocka_unit_test(test_devices_of_a_container),
        cmocka_unit_test(test_variables_of_shown_totals),
        cmocka_unit_test(test_limits_of_mps_before_schedulers),
        cmocka_unit_test(test_values_that_are_ignored_are_logged),
        cmocka_unit_test(test_socket_path),
        cmocka_unit_test(test_several_directories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
