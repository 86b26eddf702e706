/* SPDX-License-Identifier: Apache-2.0 */
/* The masks are the kernel's: those of libc are larger, and the storage of a thread is small. */
#include "deferred_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LAST_SIGNAL 64
#define BIT(number) (UINT64_C(1) << ((number)-1))

/* The signals of faults, and two that libc keeps to itself. */
#define NEVER_DEFERRED                                                                      \
    (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGABRT) | \
     BIT(SIGSYS) | BIT(32) | BIT(33))

_Atomic bool signals_are_deferred;

struct deferral {
    uint64_t before; /* the mask of the thread */
    unsigned depth;
};

static __thread __attribute__((tls_model("initial-exec"))) struct deferral deferral;

/* Cannot fail with these arguments; errno is the program's. */
static void change_mask(int how, uint64_t mask, uint64_t *ret_before)
{
    syscall(SYS_rt_sigprocmask, how, &mask, ret_before, sizeof(mask));
}

void signals_begin_to_defer(void)
{
    atomic_store_explicit(&signals_are_deferred, true, memory_order_seq_cst);
}

/* Signals wait before the depth says so: a handler never sees a depth that is not its own. */
void signals_defer_slowly(void)
{
    uint64_t before;

    if (deferral.depth == 0) {
        change_mask(SIG_BLOCK, ~NEVER_DEFERRED, &before);
        deferral.before = before;
    }
    deferral.depth++;
}

/* A lock that was taken before anything was deferred is given back without. */
void signals_restore_slowly(void)
{
    if (deferral.depth && --deferral.depth == 0)
        change_mask(SIG_SETMASK, deferral.before, NULL);
}

static bool has_handler(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) < 0 || (action.sa_flags & SA_SIGINFO) ||
           action.sa_handler != SIG_DFL;
}

void signals_admit_without_handler(void)
{
    uint64_t pending = 0, admitted = 0;

    if (!deferral.depth || syscall(SYS_rt_sigpending, &pending, sizeof(pending)) < 0)
        return;
    pending &= ~deferral.before;
    for (int number = 1; number <= LAST_SIGNAL; number++)
        if ((pending & BIT(number)) && !has_handler(number))
            admitted |= BIT(number);
    if (admitted)
        change_mask(SIG_UNBLOCK, admitted, NULL);
}

void signals_after_fork_in_child(void)
{
    if (deferral.depth)
        change_mask(SIG_SETMASK, deferral.before, NULL);
    deferral.depth = 0;
}
