/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter is a list of allowed system calls. Libraries that expand or compile images only
 * compute, so every release needs the same calls. Other calls fail with an error.
 */
#include "process_limits.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static int limit(int resource, rlim_t value)
{
    const struct rlimit both = {value, value};

    return setrlimit(resource, &both) ? -errno : 0;
}

static int limit_all(unsigned cpu_seconds, uint64_t memory_max)
{
    int error = limit(RLIMIT_CPU, cpu_seconds);

    if (!error)
        error = limit(RLIMIT_CORE, 0);
    if (!error)
        error = limit(RLIMIT_FSIZE, 0); /* of files; a pipe is none */
    if (!error && !PROCESS_HAS_SANITIZER)
        error = limit(RLIMIT_DATA, memory_max);
    return error;
}

#ifdef ARCHITECTURE

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), ANSWER(SECCOMP_RET_ALLOW)
/* Memory, but no code. The protection is the third argument; its low half holds all flags. */
#define ALLOW_DATA(name)                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(args[2]), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), REFUSE, ANSWER(SECCOMP_RET_ALLOW)

static int install_filter(void)
{
    struct sock_filter code[] = {
        LOAD(arch),       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        REFUSE,           LOAD(nr),
        ALLOW(write),     ALLOW(exit_group),
        ALLOW(exit),      ALLOW(brk),
        ALLOW(munmap),    ALLOW(mremap),
        ALLOW(madvise),   ALLOW(rt_sigreturn),
        ALLOW_DATA(mmap), ALLOW_DATA(mprotect),
        REFUSE,
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -errno;
    /* A kernel that has no filters says so. */
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) && errno != EINVAL ? -errno : 0;
}

#else

static int install_filter(void)
{
    return 0;
}

#endif

int process_limits_apply(unsigned cpu_seconds, uint64_t memory_max)
{
    int error = limit_all(cpu_seconds, memory_max);

    return error || PROCESS_HAS_SANITIZER ? error : install_filter();
}
