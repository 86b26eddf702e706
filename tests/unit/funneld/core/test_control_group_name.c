/* SPDX-License-Identifier: Apache-2.0 */
/* The names of pods, jobs, containers and scopes, by the control groups that schedulers and engines
 * make. */
#include "control_group_name.h"

#include <string.h>

#include "unit.h"

#define ID "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0"
#define OUTER "0000000000000000000000000000000000000000000000000000000000000001"
#define POD "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define POD_OF_SYSTEMD "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"

static void check_name(const char *groups, const char *name)
{
    char found[HELLO_GROUP_MAX];

    memset(found, 'x', sizeof(found));
    control_groups_name(groups, found);
    assert_string_equal(found, name);
}

static void check_container(const char *groups, const char *name)
{
    char found[HELLO_GROUP_MAX];

    memset(found, 'x', sizeof(found));
    control_groups_container(groups, found);
    assert_string_equal(found, name);
}

static void test_containers_of_pods(void **state)
{
    check_container("0::/kubepods/besteffort/pod" POD "/" ID "\n", "9f8e7d6c5b4a");
    check_container("0::/docker/" OUTER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod"
                    "0f1e2d3c4b5a69788796a5b4c3d2e1f0.slice/cri-containerd-" ID ".scope\n",
                    "9f8e7d6c5b4a");
    check_container("0::/kubepods/pod" POD "\n", "");
    check_container("9:memory:/slurm/uid_1000/job_123/step_0/task_0\n0::/\n", "");
    check_container("0::/user.slice/user@1000.service/app.slice/x.scope\n", "");
}

static void test_pods(void **state)
{
    const char *name = "pod_0f1e2d3c4b5a";

    check_name("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_OF_SYSTEMD
               ".slice/cri-containerd-" ID ".scope\n",
               name);
    check_name("0::/kubepods.slice/kubepods-pod" POD_OF_SYSTEMD ".slice/crio-" ID
               ".scope/container\n",
               name);
    check_name("0::/kubepods/besteffort/pod" POD "/" ID "\n", name);
    check_name("12:devices:/kubepods/pod" POD "/" ID "\n3:memory:/kubepods/pod" POD "/" ID
               "\n1:name=systemd:/\n0::/\n",
               name);
    check_name("0::/../../kubepods-besteffort-pod" POD_OF_SYSTEMD ".slice/cri-containerd-" ID
               ".scope\n",
               name);
    check_name("0::/system.slice/containerd.service/kubepods-burstable-pod" POD_OF_SYSTEMD
               ".slice:cri-containerd:" ID "\n",
               "container_9f8e7d6c5b4a");
    /* kind: nodes are containers. A static pod has a hash for its UID. */
    check_name("0::/docker/" OUTER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod"
               "0f1e2d3c4b5a69788796a5b4c3d2e1f0.slice/cri-containerd-" ID ".scope\n",
               name);
    check_name("0::/pods/pod" POD "\n", "");
    check_name("0::/kubepods/pod0f1e2d3c\n", "");
    check_name("0::/kubepods/pod" POD "0\n", "");
}

static void test_jobs(void **state)
{
    check_name("9:memory:/slurm/uid_1000/job_123/step_0/task_0\n0::/\n", "job_123");
    check_name("0::/system.slice/slurmstepd.scope/job_77/step_batch/user/task_0\n", "job_77");
    check_name("0::/system.slice/n1_slurmstepd.scope/job_8/step_0/user/task_0/docker-" ID
               ".scope\n",
               "job_8");
    check_name("0::/job_77/step_0\n", "");
    check_name("0::/slurm/job_\n", "");
    check_name("0::/slurm/job_7x\n", "");
    check_name("0::/slurm/job_1234567890123456789012345678\n", "");
}

static void test_containers(void **state)
{
    const char *name = "container_9f8e7d6c5b4a";

    check_name("0::/system.slice/docker-" ID ".scope\n", name);
    check_name("5:cpu,cpuacct:/docker/" ID "\n", name);
    check_name("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
               ".scope/container\n",
               name);
    check_name("0::/docker/" OUTER "/docker/" ID "\n", name);
    check_name("0::/docker/x" ID "\n", "");
    check_name("0::/docker/" ID "0\n", "");
    check_name("0::/docker/-" ID "\n", name);
}

static void test_scopes(void **state)
{
#define USER "0::/user.slice/user-1000.slice/user@1000.service/"
    check_name(USER "app.slice/train.scope\n", "scope_train");
    check_name(USER "app.slice/run-u12.scope/below\n", "scope_run_u12");
    check_name(USER "app.slice/a\\x2d\033[2J\xc3\xa4.scope\n", "scope_a_x2d__2J__");
    check_name(USER "init.scope\n", "");
    check_name(USER "app.slice/jupyter.service\n", "");
    check_name("0::/user.slice/user-1000.slice/session-3.scope\n", "");
    check_name("0::/system.slice/train.scope\n", "");
}

static void test_long_names_differ(void **state)
{
    char one[HELLO_GROUP_MAX], other[HELLO_GROUP_MAX];

    control_groups_name(USER "app.slice/a_scope_with_a_very_long_name_1.scope\n", one);
    control_groups_name(USER "app.slice/a_scope_with_a_very_long_name_2.scope\n", other);
    assert_int_equal(strlen(one), HELLO_GROUP_MAX - 1);
    assert_memory_equal(one, "scope_a_scope_with_a_v_", strlen("scope_a_scope_with_a_v_"));
    assert_string_not_equal(one, other);
}

static void test_nothing(void **state)
{
    char large[70000];

    check_name("", "");
    check_name("\n\n:\n0::\n", "");
    check_name("0::/\n", "");
    check_name("0::/docker/" ID, "container_9f8e7d6c5b4a");
    check_name("0::///docker///" ID "///\n", "container_9f8e7d6c5b4a");
    memset(large, 'a', sizeof(large));
    memcpy(large, "0::/", 4);
    large[sizeof(large) - 1] = '\0';
    check_name(large, "");
    for (size_t i = 4; i < sizeof(large) - 1; i += 2)
        large[i] = '/';
    check_name(large, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods),       cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_containers), cmocka_unit_test(test_containers_of_pods),
        cmocka_unit_test(test_scopes),     cmocka_unit_test(test_long_names_differ),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
