/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler stays once it is there. A thread may have met a page that was read-only, and be told
 * so only when it is writable again. Whether it is, the kernel says: it adds nothing to a word
 * there. All other faults are the program's, and its handler's that was there before.
 */
#include "write_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "fd.h"

#define PAUSE_NS 20000
#define TRIES 100 /* of a millisecond each */

static struct {
    pthread_mutex_t lock; /* between begin and end */
    atomic_bool active;
    bool installed;
    struct sigaction before;
    uint32_t unused; /* a futex without waiters */
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the handler ---- */

#ifdef __x86_64__
#define IS_SUPPORTED true
#define ERROR_OF_WRITE 2

static bool is_write(const void *context)
{
    const ucontext_t *state = context;

    return state->uc_mcontext.gregs[REG_ERR] & ERROR_OF_WRITE;
}
#else
#define IS_SUPPORTED false

static bool is_write(const void *context)
{
    return false;
}
#endif

/* Partner: write_guard_end(). The thread must not be canceled here, as it could be in nanosleep().
 */
static void await_end(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    while (atomic_load_explicit(&guard.active, memory_order_acquire))
        syscall(SYS_nanosleep, &pause, NULL);
}

/* The word of the page is or-ed with 0, as an atomic operation. */
static bool may_write(uint64_t address)
{
    void *word = (void *)(uintptr_t)(address & ~(uint64_t)3);

    return syscall(SYS_futex, &guard.unused, FUTEX_WAKE_OP_PRIVATE, 0, 0, word,
                   FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0x800)) >= 0;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};

    if (guard.before.sa_flags & SA_SIGINFO) {
        guard.before.sa_sigaction(number, info, context);
        return;
    }
    if (guard.before.sa_handler != SIG_DFL && guard.before.sa_handler != SIG_IGN) {
        guard.before.sa_handler(number);
        return;
    }
    if (info->si_code <= 0 && guard.before.sa_handler == SIG_IGN)
        return;
    sigaction(number, &none, NULL); /* the fault is repeated, and ends the process */
    if (info->si_code <= 0)
        raise(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int error = errno;
    bool again = info->si_code == SEGV_ACCERR && is_write(context);

    if (again) {
        await_end();
        again = may_write((uintptr_t)info->si_addr);
    }
    errno = error;
    if (!again)
        pass_on(number, info, context);
}

/* A handler that the program has set since may call this one, which must not call it in turn. */
static bool install_locked(void)
{
    struct sigaction now, ours;

    if (sigaction(SIGSEGV, NULL, &now) < 0)
        return false;
    if (guard.installed)
        return now.sa_sigaction == on_fault;
    guard.before = ours = now;
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | (now.sa_flags & SA_NODEFER);
    guard.installed = sigaction(SIGSEGV, &ours, NULL) == 0;
    return guard.installed;
}

/* ---- other threads ---- */

/* In the text of /proc/self/task/N/status. */
static bool says_blocked(const char *text)
{
    const char *mask = strstr(text, "\nSigBlk:");

    return !mask || strtoull(mask + 8, NULL, 16) & 1ull << (SIGSEGV - 1);
}

/* A thread that has ended meanwhile blocks nothing. */
static bool blocks_faults(const char *thread)
{
    char name[64], text[4096];

    snprintf(name, sizeof(name), "/proc/self/task/%.20s/status", thread);
    _cleanup_fd_ int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (size <= 0)
        return false;
    text[size] = '\0';
    return says_blocked(text);
}

static bool any_thread_blocks_now(void)
{
    const long self = syscall(SYS_gettid);
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *entry;
    bool found = !folder;

    while (!found && (entry = readdir(folder)))
        found =
            entry->d_name[0] != '.' && atol(entry->d_name) != self && blocks_faults(entry->d_name);
    if (folder)
        closedir(folder);
    return found;
}

/* Where threads begin and end, they block all signals for a moment. */
static bool any_thread_blocks_faults(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < TRIES; i++) {
        if (!any_thread_blocks_now())
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* ---- beginning and end ---- */

static int protect(const struct page_area *areas, unsigned count, int without)
{
    int r = 0;

    for (unsigned i = 0; i < count; i++)
        if (areas[i].protection & PROT_WRITE &&
            mprotect((void *)(uintptr_t)areas[i].start, areas[i].size,
                     areas[i].protection & ~without) < 0)
            r = -errno;
    return r;
}

int write_guard_begin(const struct page_area *areas, unsigned count)
{
    int r;

    if (!IS_SUPPORTED || any_thread_blocks_faults())
        return -EOPNOTSUPP;
    pthread_mutex_lock(&guard.lock);
    if (!install_locked()) {
        pthread_mutex_unlock(&guard.lock);
        return -EOPNOTSUPP;
    }
    atomic_store_explicit(&guard.active, true, memory_order_release);
    r = protect(areas, count, PROT_WRITE);
    if (r < 0)
        write_guard_end(areas, count);
    return r;
}

void write_guard_end(const struct page_area *areas, unsigned count)
{
    protect(areas, count, 0);
    atomic_store_explicit(&guard.active, false, memory_order_release);
    pthread_mutex_unlock(&guard.lock);
}

void write_guard_before_fork(void)
{
    pthread_mutex_lock(&guard.lock);
}

void write_guard_after_fork(void)
{
    pthread_mutex_unlock(&guard.lock);
}
