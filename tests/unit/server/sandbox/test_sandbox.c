/* SPDX-License-Identifier: Apache-2.0 */
/* What the filter of system calls refuses, and what goes on. Each case is a process of its own. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "landlock.h"
#include "sandbox.h"

/* Whether `attempt` succeeds in a process that is sealed. */
static bool succeeds(bool (*attempt)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        sandbox_drop_privileges(false, NULL);
        sandbox_seal();
        _exit(attempt() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

/* ---- refused ---- */

/* Nothing but the filter makes these fail like this: their arguments are wrong or harmless. */
static const struct {
    const char *name;
    long number, arguments[3];
} refused[] = {
    {"execve", SYS_execve, {0}},
    {"ptrace", SYS_ptrace, {PTRACE_TRACEME}},
    {"process_vm_readv", SYS_process_vm_readv, {-1}},
    {"process_vm_writev", SYS_process_vm_writev, {-1}},
    {"mount", SYS_mount, {0}},
    {"unshare", SYS_unshare, {0}},
    {"setns", SYS_setns, {-1}},
    {"chroot", SYS_chroot, {0}},
    {"bpf", SYS_bpf, {-1}},
    {"perf_event_open", SYS_perf_event_open, {0}},
    {"userfaultfd", SYS_userfaultfd, {-1}},
    {"keyctl", SYS_keyctl, {KEYCTL_GET_KEYRING_ID, -1}},
    {"io_uring_setup", SYS_io_uring_setup, {0}},
    {"socket AF_INET", SYS_socket, {AF_INET, SOCK_STREAM}},
    {"socket AF_NETLINK", SYS_socket, {AF_NETLINK, SOCK_RAW}},
    {"clone", SYS_clone, {SIGCHLD}},
    {"kill", SYS_kill, {0, SIGCONT}},
    {"tgkill", SYS_tgkill, {1, 1, 0}},
    {"rt_sigqueueinfo", SYS_rt_sigqueueinfo, {-1}},
    {"pidfd_send_signal", SYS_pidfd_send_signal, {-1}},
    {"prlimit64", SYS_prlimit64, {1, -1}},
    {"open_tree", SYS_open_tree, {-1}},
    {"mount_setattr", SYS_mount_setattr, {-1}},
#ifdef __x86_64__
    {"getpid of the x32 ABI", 0x40000000 + SYS_getpid, {0}},
#endif
};

static bool is_not_refused(long number, const long arguments[3])
{
    errno = 0;
    long result = syscall(number, arguments[0], arguments[1], arguments[2], 0, 0);

    if (number == SYS_clone && result == 0)
        _exit(0);
    return result >= 0 || errno != EPERM;
}

static bool any_is_allowed(void)
{
    bool any = false;

    for (unsigned i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        if (!is_not_refused(refused[i].number, refused[i].arguments))
            continue;
        print_message("%s is not refused\n", refused[i].name);
        any = true;
    }
    return any;
}

static void calls_that_servers_never_need_are_refused(void **state)
{
    assert_false(succeeds(any_is_allowed));
}

static bool fork_again(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    return child > 0;
}

static void processes_cannot_be_made(void **state)
{
    assert_false(succeeds(fork_again));
}

static bool is_dumpable(void)
{
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0;
}

static void no_core_is_left(void **state)
{
    assert_false(succeeds(is_dumpable));
}

/* ---- files ---- */

static bool has_landlock(void)
{
    struct landlock_ruleset ruleset;
    int error = landlock_begin(&ruleset);

    if (!error)
        close(ruleset.fd);
    return !error;
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* The process that runs the tests stands for another program of the server's user. */
static bool open_memory_of_another(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
    return opens(path, O_RDWR) || opens(path, O_RDONLY);
}

static char users_file[] = "/tmp/funnel-test-XXXXXX";

static bool open_users_file(void)
{
    return opens(users_file, O_WRONLY) || opens(users_file, O_RDONLY) || unlink(users_file) == 0;
}

static bool make_file(void)
{
    return opens("/tmp/funnel-test-sandbox", O_WRONLY | O_CREAT);
}

static void files_of_the_user_are_out_of_reach(void **state)
{
    if (!has_landlock())
        skip();
    int fd = mkstemp(users_file);

    assert_true(fd >= 0);
    close(fd);
    assert_false(succeeds(open_users_file));
    assert_false(succeeds(make_file));
    assert_false(succeeds(open_memory_of_another));
    unlink(users_file);
}

static bool open_what_drivers_open(void)
{
    return opens("/dev/null", O_RDWR) && opens("/proc/self/maps", O_RDONLY) &&
           opens("/proc/self/comm", O_WRONLY) && opens("/proc/cpuinfo", O_RDONLY) &&
           opens("/sys/devices/system/cpu/online", O_RDONLY);
}

static void files_of_drivers_open(void **state)
{
    assert_true(succeeds(open_what_drivers_open));
}

/* ---- allowed ---- */

static void *try_in_a_thread(void *unused)
{
    return syscall(SYS_unshare, 0) < 0 && errno == EPERM ? &errno : NULL;
}

/* A thread that comes later has the filter, too. */
static bool make_thread(void)
{
    pthread_t thread;
    void *refused_there = NULL;

    return !pthread_create(&thread, NULL, try_in_a_thread, NULL) &&
           !pthread_join(thread, &refused_there) && refused_there;
}

static void threads_go_on(void **state)
{
    assert_true(succeeds(make_thread));
}

static bool make_what_servers_need(void)
{
    int pair[2], memory = memfd_create("needed", MFD_ALLOW_SEALING);

    return memory >= 0 && !ftruncate(memory, 4096) &&
           mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) != MAP_FAILED &&
           !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) && socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static void servers_go_on(void **state)
{
    assert_true(succeeds(make_what_servers_need));
}

static void the_sandbox_can_be_left_out(void **state)
{
    setenv("FUNNEL_OFF", "sandbox", 1);
    bool forked = succeeds(fork_again);

    unsetenv("FUNNEL_OFF");
    assert_true(forked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_servers_never_need_are_refused),
        cmocka_unit_test(processes_cannot_be_made),
        cmocka_unit_test(no_core_is_left),
        cmocka_unit_test(files_of_the_user_are_out_of_reach),
        cmocka_unit_test(files_of_drivers_open),
        cmocka_unit_test(threads_go_on),
        cmocka_unit_test(servers_go_on),
        cmocka_unit_test(the_sandbox_can_be_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
