/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter lists refused calls instead of allowed ones, because drivers make other calls in each
 * release. A refused call fails with EPERM instead of ending all clients.
 */
#include "sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capabilities.h"
#include "feature.h"
#include "log.h"
#include "sandbox_files.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* The leak checker of a sanitizer clones a process that traces this one. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER true
#else
#define HAS_SANITIZER false
#endif

static bool is_off(void)
{
    return HAS_SANITIZER || feature_is_off(FEATURE_SANDBOX);
}

static bool are_devices_missing(void)
{
    return access("/dev/nvidia-uvm", F_OK) != 0;
}

/* The kernel forbids tracing a process that has changed its user, until it executes another
 * program. */
int sandbox_become_user(uid_t uid)
{
    if (uid == (uid_t)-1)
        return 0;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (setresuid(uid, uid, uid))
        return -errno;
    prctl(PR_SET_DUMPABLE, is_off(), 0, 0, 0);
    return 0;
}

void sandbox_drop_privileges(bool may_be_nvidia, const char *listen_path)
{
    if (is_off() || (may_be_nvidia && are_devices_missing()))
        return;
    capabilities_drop();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int error = sandbox_files_confine(listen_path);
    if (error)
        log_line("The kernel restricts no files by Landlock (%s): the server may open all of its "
                 "user's",
                 strerror(-error));
}

#ifdef ARCHITECTURE

static const int refused[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_open_by_handle_at,
    SYS_acct,
    SYS_kcmp,
    SYS_quotactl,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
#ifdef SYS_pidfd_send_signal
    SYS_pidfd_send_signal,
#endif
#ifdef SYS_process_madvise
    SYS_process_madvise,
#endif
#ifdef SYS_process_mrelease
    SYS_process_mrelease,
#endif
#ifdef SYS_open_tree
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
#endif
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
};

#define REFUSED (sizeof(refused) / sizeof(*refused))
#define FILTER_MAX (2 * REFUSED + 40)
#define X32_CALLS 0x40000000u

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short count;
};

static void put_instruction(struct filter *filter, struct sock_filter instruction)
{
    filter->code[filter->count++] = instruction;
}

static void add_load(struct filter *filter, size_t offset)
{
    put_instruction(filter,
                    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void add_answer(struct filter *filter, unsigned action)
{
    put_instruction(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Refuses the call with `error`. */
static void refuse_call(struct filter *filter, int number, int error)
{
    put_instruction(
        filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1));
    add_answer(filter, SECCOMP_RET_ERRNO | (unsigned)error);
}

/* Allows the call where the low half of an argument passes the test, and refuses it elsewhere. */
static void allow_if(struct filter *filter, int number, unsigned argument, unsigned short test,
                     unsigned value)
{
    put_instruction(
        filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4));
    add_load(filter, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
    put_instruction(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 1, 0));
    add_answer(filter, SECCOMP_RET_ERRNO | EPERM);
    add_answer(filter, SECCOMP_RET_ALLOW);
}

static void build_filter(struct filter *filter)
{
    add_load(filter, offsetof(struct seccomp_data, arch));
    put_instruction(filter,
                    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add_answer(filter, SECCOMP_RET_ERRNO | EPERM);
    add_load(filter, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    /* The calls of the x32 ABI would pass a list of numbers. */
    put_instruction(filter,
                    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1));
    add_answer(filter, SECCOMP_RET_ERRNO | EPERM);
#endif
    for (size_t i = 0; i < REFUSED; i++)
        refuse_call(filter, refused[i], EPERM);
#ifdef SYS_clone3
    /* A filter cannot read its flags, which lie in memory; without clone3() the C library uses
     * clone(). */
    refuse_call(filter, SYS_clone3, ENOSYS);
#endif
    allow_if(filter, SYS_clone, 0, BPF_JSET, CLONE_THREAD);
    allow_if(filter, SYS_socket, 0, BPF_JEQ, AF_UNIX);
    /* Signal 0 asks whether a process lives. */
    allow_if(filter, SYS_kill, 1, BPF_JEQ, 0);
    allow_if(filter, SYS_tgkill, 0, BPF_JEQ, (unsigned)getpid());
    allow_if(filter, SYS_prlimit64, 0, BPF_JEQ, 0);
    add_answer(filter, SECCOMP_RET_ALLOW);
}

/* Installs the filter, and no_new_privs, in all threads. */
static int install(const struct filter *filter)
{
    const struct sock_fprog program = {filter->count, (struct sock_filter *)filter->code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)
               ? -errno
               : 0;
}

#endif

void sandbox_seal(void)
{
    if (is_off())
        return;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#ifdef ARCHITECTURE
    struct filter filter = {.count = 0};
    build_filter(&filter);
    int error = install(&filter);
    if (error)
        log_line("The kernel takes no filter of system calls (%s): the server runs without one",
                 strerror(-error));
#endif
}
