/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages are hidden by dropping them from the page table, while the memory file keeps them. The next
 * access is then a fault that the kernel calls minor, or missing where the file has no page yet.
 */
#include "page_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "userfault.h"

/* Constants that some kernel headers do not have yet. */
#define FEATURE_THREAD_ID (1ull << 8)
#define FEATURE_MINOR_SHARED_MEMORY (1ull << 10)
#define FEATURE_WP_SHARED_MEMORY (1ull << 12)
#define REGISTER_MINOR (1ull << 2)
#define CONTINUE_READ_ONLY (1ull << 1)
#define PAGE_SIZE 4096u

struct continue_request {
    struct uffdio_range range;
    uint64_t mode;
    int64_t mapped;
};

#define REQUEST_CONTINUE _IOWR(UFFDIO, 0x07, struct continue_request)

/* Whether pages are always shown writable. Written before there is a watch. */
static bool all_writable;

static int open_with(unsigned flags, uint64_t features, unsigned *ret_got)
{
    struct uffdio_api api = {
        .api = UFFD_API, .features = features | FEATURE_THREAD_ID | FEATURE_MINOR_SHARED_MEMORY};
    bool threads_only;
    int fd = userfault_open(flags & WATCH_THREADS_ONLY, &threads_only), error;

    if (threads_only)
        *ret_got |= WATCH_THREADS_ONLY;
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) == 0)
        return fd;
    error = errno;
    fd_close(&fd);
    return -error;
}

int page_watch_open(unsigned flags, unsigned *ret_got)
{
    int fd = -EINVAL;

    *ret_got = 0;
    if (!(flags & WATCH_ALL_WRITABLE))
        fd = open_with(flags, UFFD_FEATURE_PAGEFAULT_FLAG_WP | FEATURE_WP_SHARED_MEMORY, ret_got);
    all_writable = fd == -EINVAL;
    if (all_writable) {
        *ret_got = WATCH_ALL_WRITABLE;
        fd = open_with(flags, 0, ret_got);
    }
    return fd;
}

int page_watch_add(int watch, uint64_t address, uint64_t size)
{
    struct uffdio_register request = {.range = {address, size},
                                      .mode = UFFDIO_REGISTER_MODE_MISSING | REGISTER_MINOR};

    if (!all_writable)
        request.mode |= UFFDIO_REGISTER_MODE_WP;
    return ioctl(watch, UFFDIO_REGISTER, &request) < 0 ? -errno : 0;
}

void page_watch_remove(int watch, uint64_t address, uint64_t size)
{
    struct uffdio_range range = {address, size};

    ioctl(watch, UFFDIO_UNREGISTER, &range);
}

static int read_fault(int watch, struct page_fault *ret_fault)
{
    struct uffd_msg message;
    ssize_t size = read(watch, &message, sizeof(message));

    if (size < 0)
        return -errno;
    if (size != sizeof(message) || message.event != UFFD_EVENT_PAGEFAULT)
        return -EAGAIN;
    *ret_fault = (struct page_fault){
        .address = message.arg.pagefault.address & ~(uint64_t)(PAGE_SIZE - 1),
        .thread = (int)message.arg.pagefault.feat.ptid,
        .writes =
            message.arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP),
    };
    return 0;
}

int page_watch_next(int watch, struct page_fault *ret_fault)
{
    int error;

    do
        error = read_fault(watch, ret_fault);
    while (error == -EINTR || error == -EAGAIN);
    return error;
}

/* Only a descriptor that does not allocation can be polled. A thread that a signal takes out of its
 * sleep leaves nothing to read. */
int page_watch_next_within(int watch, uint32_t ns, struct page_fault *ret_fault)
{
    const struct timespec timeout = {0, (long)ns};
    struct pollfd poll = {.fd = watch, .events = POLLIN};
    int flags = fcntl(watch, F_GETFL), error;

    fcntl(watch, F_SETFL, flags | O_NONBLOCK);
    ppoll(&poll, 1, &timeout, NULL);
    error = read_fault(watch, ret_fault);
    fcntl(watch, F_SETFL, flags);
    return error == -EINTR ? -EAGAIN : error;
}

void page_watch_wake(int watch, uint64_t address, uint64_t size)
{
    struct uffdio_range range = {address, size};

    ioctl(watch, UFFDIO_WAKE, &range);
}

/* The signal is there before the thread goes on. Only the kernel may say what a fault was
 * (si_code), but the address is told. */
bool page_watch_refuse(int watch, const struct page_fault *fault)
{
    siginfo_t info = {.si_signo = SIGSEGV, .si_code = SI_QUEUE};

    info.si_addr = (void *)(uintptr_t)fault->address;
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), fault->thread, SIGSEGV, &info) < 0)
        return false;
    page_watch_wake(watch, fault->address, PAGE_SIZE);
    return true;
}

/* How many bytes were shown; 0 and errno when the first page was not. */
static uint64_t show_some(int watch, uint64_t address, uint64_t size, uint64_t mode)
{
    struct continue_request request = {.range = {address, size}, .mode = mode};

    if (ioctl(watch, REQUEST_CONTINUE, &request) == 0)
        return size;
    return request.mapped > 0 ? (uint64_t)request.mapped : 0;
}

/* The memory gets a page that it did not have. It is shown as others are then. */
static bool make_page(int watch, uint64_t address)
{
    struct uffdio_zeropage request = {.range = {address, PAGE_SIZE},
                                      .mode = UFFDIO_ZEROPAGE_MODE_DONTWAKE};

    if (ioctl(watch, UFFDIO_ZEROPAGE, &request) < 0)
        return false;
    page_watch_hide(address, PAGE_SIZE);
    return true;
}

/* The kernel leaves a present page as it is; a page that cannot be shown faults again. */
static uint64_t pass_page(int watch, uint64_t address)
{
    page_watch_wake(watch, address, PAGE_SIZE);
    return PAGE_SIZE;
}

bool page_watch_show(int watch, uint64_t address, uint64_t size, bool writable)
{
    uint64_t mode = writable || all_writable ? 0 : CONTINUE_READ_ONLY;

    for (uint64_t done = 0; done < size;) {
        uint64_t shown = show_some(watch, address + done, size - done, mode);

        if (shown == 0 && errno == EAGAIN)
            continue;
        if (shown == 0 && errno == EFAULT && make_page(watch, address + done))
            continue;
        if (shown == 0 && errno == EINVAL && mode && done == 0) {
            mode = 0; /* before Linux 6.4 */
            continue;
        }
        done += shown ? shown : pass_page(watch, address + done);
    }
    return mode == 0;
}

void page_watch_allow_writes(int watch, uint64_t address, uint64_t size)
{
    struct uffdio_writeprotect request = {.range = {address, size}};

    while (!all_writable && ioctl(watch, UFFDIO_WRITEPROTECT, &request) < 0 && errno == EAGAIN)
        continue;
    page_watch_wake(watch, address, size);
}

void page_watch_hide(uint64_t address, uint64_t size)
{
    madvise((void *)(uintptr_t)address, size, MADV_DONTNEED);
}
