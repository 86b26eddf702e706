/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file creates servers, namespaces and partitions, or is refused with its line.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation.h"
#include "service.h"
#include "unit.h"

static struct daemon daemon_state;
static char folder[64];

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    daemon_init(&daemon_state);
    strcpy(folder, "/tmp/funnel-config-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    strcpy(daemon_state.paths.pipe, folder);
    return 0;
}

static int teardown(void **state)
{
    char command[96];

    services_close(&daemon_state);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

static int apply(const char *text, char reason[CONFIG_REASON_MAX])
{
    char path[96];
    FILE *file;

    snprintf(path, sizeof(path), "%s/servers.toml", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return config_apply(&daemon_state, path, reason);
}

static void test_a_server_with_a_namespace(void **state)
{
    char reason[CONFIG_REASON_MAX] = "";
    const struct service *service;
    const struct mps_namespace *space;

    assert_int_equal(apply("schema_version = \"1.0\"\n"
                           "[servers.night]\n"
                           "allowed_devices = [\"1\", \"2\"]\n"
                           "active_thread_percentage = 50\n"
                           "isolate = \"program\"\n"
                           "[servers.night.namespaces.small]\n"
                           "pinned_memory_limit = \"8G\"\n"
                           "client_priority = 1\n",
                           reason),
                     0);
    service = service_find(&daemon_state, "night");
    assert_non_null(service);
    assert_string_equal(service->devices, "1,2");
    assert_int_equal(service->isolation, ISOLATION_PROGRAM);
    space = service_namespace(service, NAMESPACE_DEFAULT);
    assert_int_equal(space->change.sm_centipercent, 5000);
    assert_false(space->change.sets_memory);
    space = service_namespace(service, "small");
    assert_int_equal(space->change.sm_centipercent, 0);
    assert_true(space->change.sets_memory && space->change.memory == 8ull << 30);
    assert_true(space->change.sets_priority && space->change.priority == 1);
}

static void test_control_groups(void **state)
{
    char reason[CONFIG_REASON_MAX] = "";
    const struct service *service;
    const struct mps_namespace *space;

    assert_int_equal(apply("[servers.a.namespaces.x]\n"
                           "cgroup = \"/sys/fs/cgroup/training\"\n"
                           "cgroup_depth = 1\n"
                           "[servers.a.namespaces.default]\n"
                           "cgroup = \"/sys/fs/cgroup/others\"\n",
                           reason),
                     0);
    service = service_find(&daemon_state, "a");
    space = service_namespace(service, "x");
    assert_string_equal(space->cgroup, "/sys/fs/cgroup/training");
    assert_int_equal(space->cgroup_depth, 1);
    space = service_namespace(service, NAMESPACE_DEFAULT);
    assert_string_equal(space->cgroup, "/sys/fs/cgroup/others");
    assert_int_equal(space->cgroup_depth, GRAMMAR_LEVELS_ALL);
}

static void test_partitions(void **state)
{
    char reason[CONFIG_REASON_MAX] = "";
    const struct service *service;

    assert_int_equal(apply("[[servers.divided.devices]]\n"
                           "uuid = \"GPU-302653ec\"\n"
                           "[[servers.divided.devices.sm_partitions]]\n"
                           "name = \"serving\"\n"
                           "chunks = 12\n"
                           "[[servers.divided.devices.sm_partitions]]\n"
                           "name = \"rest\"\n"
                           "chunks = 4\n"
                           "include_remainder = true\n",
                           reason),
                     0);
    service = service_find(&daemon_state, "divided");
    assert_true(service->partitions.on);
    assert_int_equal(service->partitions.count, 2);
    assert_string_equal(service->partitions.partition[0].device, "GPU-302653ec");
    assert_int_equal(service->partitions.partition[0].chunks, 12);
    assert_false(service->partitions.partition[0].takes_remainder);
    assert_true(service->partitions.partition[1].takes_remainder);
}

static void test_partition_of_a_namespace(void **state)
{
    char reason[CONFIG_REASON_MAX] = "";
    const struct service *service;
    const struct mps_namespace *space;

    assert_int_equal(apply("[[servers.a.namespaces.x.devices]]\n"
                           "uuid = \"GPU-302653ec\"\n"
                           "sm_partition = \"large\"\n"
                           "[[servers.a.devices]]\n"
                           "uuid = \"GPU-302653ec\"\n"
                           "[[servers.a.devices.sm_partitions]]\n"
                           "name = \"large\"\n"
                           "chunks = 4\n"
                           "shareable = true\n"
                           "max_chunks = 6\n",
                           reason),
                     0);
    service = service_find(&daemon_state, "a");
    assert_true(service->partitions.on);
    assert_int_equal(service->partitions.partition[0].chunks, 4);
    assert_true(service->partitions.partition[0].is_shareable);
    assert_int_equal(service->partitions.partition[0].most_chunks, 6);
    space = service_namespace(service, "x");
    assert_string_equal(space->partition, "large");
    assert_string_equal(space->partition_device, "GPU-302653ec");
}

static void test_features(void **state)
{
    char reason[CONFIG_REASON_MAX] = "";

    assert_int_equal(apply("[features.memacct]\naudit_log = true\n", reason), 0);
    assert_true(daemon_state.audits && daemon_state.audits_by_order);
    assert_int_equal(apply("[features.memacct]\nforce_polling = false\n", reason), 0);
    assert_true(daemon_state.audits);
}

static void test_compute_policy(void **state)
{
    char reason[CONFIG_REASON_MAX] = "";

    assert_int_equal(apply("[compute_policy]\ntimeslice = \"long\"\ntimeslice_yield_level = 2\n"
                           "[servers.a]\ntimeslice_pct = \"75\"\n",
                           reason),
                     0);
    assert_int_equal(daemon_state.timeslice_us, 20000);
    assert_int_equal(service_find(&daemon_state, "a")->timeslice_percent, 75);
    assert_int_equal(apply("[compute_policy]\ntimeslice = \"default\"\n", reason), 0);
    assert_int_equal(daemon_state.timeslice_us, 0);
}

static void check_refused(const char *text, const char *line, const char *cause)
{
    char reason[CONFIG_REASON_MAX] = "";

    assert_true(apply(text, reason) < 0);
    if (!strstr(reason, line) || !strstr(reason, cause))
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", reason, line, cause);
    services_close(&daemon_state);
}

static void test_refused(void **state)
{
    check_refused("color = \"red\"\n", "line 1", "color is not known outside of tables");
    check_refused("[server.a]\n", "line 1", "is not known");
    check_refused("[servers.a]\ncolor = 1\n", "line 2", "there is no key 'color'");
    check_refused("[servers.a]\nactive_thread_percentage = 101\n", "line 2", "at most 100");
    check_refused("[servers.a]\nactive-thread-percentage = 50\n", "line 2", "there is no key");
    check_refused("[servers.a]\nlocality_domains = true\n", "line 2", "not supported");
    check_refused("[servers.a]\ncgroup = \"/sys/fs/cgroup/x\"\n", "line 2", "no key 'cgroup'");
    check_refused("[servers.a.namespaces.x]\ncgroup = \"training\"\n", "line 2",
                  "a directory below /sys/fs/cgroup");
    check_refused("[servers.log]\n", "line 1", "taken by a file of the daemon");
    check_refused("[servers.Night]\n", "line 1", "not a valid name");
    check_refused("[servers.uid_7]\nuid = 8\n", "line 2", "");
    check_refused("[[servers.a.devices.sm_partitions]]\nname = \"x\"\n", "line 1",
                  "[[servers.NAME.devices]]");
    check_refused("[[servers.a.devices]]\n[[servers.a.devices.sm_partitions]]\nname = \"x\"\n",
                  "line 2", "uuid");
    check_refused("[[servers.a.devices]]\nuuid = \"0\"\n[[servers.a.devices.sm_partitions]]\n"
                  "name = \"x\"\n",
                  "", "no name or no chunks");
    check_refused("[[servers.a.namespaces.x.devices]]\nuuid = \"0\"\n"
                  "[[servers.a.namespaces.x.devices]]\nuuid = \"1\"\n",
                  "line 3", "one device only");
    check_refused("[[servers.a.namespaces.x.devices]]\nchunks = 1\n", "line 2", "no key");
    check_refused("[compute_policy]\ntimeslice = \"longer\"\n", "line 2", "short, medium or long");
    check_refused("[compute_policy]\ntimeslice_yield_level = -1\n", "line 2", "a number");
    check_refused("[compute_policy]\ntimeslice_pct = 5\n", "line 2", "no key");
    check_refused("[features.memacct]\nenabled = false\n", "line 2", "cannot be switched off");
    check_refused("[features.context-share]\nenabled = true\n", "line 2", "not supported");
}

static void test_unreadable(void **state)
{
    char reason[CONFIG_REASON_MAX] = "";

    assert_true(config_apply(&daemon_state, "/nonexistent.toml", reason) < 0);
    assert_non_null(strstr(reason, "Cannot read /nonexistent.toml"));
}

int main(void)
{
#define WITH_DAEMON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_DAEMON(test_a_server_with_a_namespace),
        WITH_DAEMON(test_control_groups),
        WITH_DAEMON(test_partitions),
        WITH_DAEMON(test_partition_of_a_namespace),
        WITH_DAEMON(test_features),
        WITH_DAEMON(test_compute_policy),
        WITH_DAEMON(test_refused),
        WITH_DAEMON(test_unreadable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
