/* SPDX-License-Identifier: Apache-2.0 */
/* Other pages at the same addresses, while threads write there. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "page_swap.h"
#include "shm.h"

#define PAGE 4096u
#define PAGES 600u
#define SIZE (PAGES * PAGE)
#define THREADS 3u

/* write_guard.h: ThreadSanitizer has a thread that blocks all signals. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define HAS_GUARD true
#else
#define HAS_GUARD false
#endif

/* A range of the program's, and the memory file that takes its place. */
struct range_under_test {
    char *pages;
    uint64_t start;
    int fd;
    void *window;
};

static struct range_under_test make(void)
{
    struct range_under_test range = {.fd = -1};

    range.pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(range.pages != MAP_FAILED);
    range.start = (uintptr_t)range.pages;
    assert_int_equal(shm_create("test", SIZE, &range.fd), 0);
    assert_int_equal(shm_map(range.fd, SIZE, NULL, 0, &range.window), 0);
    return range;
}

static void end(struct range_under_test *range)
{
    munmap(range->pages, SIZE);
    shm_unmap(range->window, SIZE);
    fd_close(&range->fd);
}

static unsigned look(const struct range_under_test *range, struct page_area *areas)
{
    unsigned count = 0;

    assert_int_equal(page_map_read(range->start, range->start + SIZE, areas, 16, &count), 0);
    return count;
}

static int share(const struct range_under_test *range)
{
    struct page_area areas[16];
    unsigned count = look(range, areas);

    return pages_share(areas, count, range->start, range->fd, range->window);
}

static int take_back(const struct range_under_test *range)
{
    struct page_area areas[16];
    unsigned count = look(range, areas);

    return pages_unshare(areas, count, range->start, range->fd);
}

static void contents_stay(void **state)
{
    struct range_under_test range = make();

    (void)state;
    memset(range.pages + PAGE, 7, SIZE / 2);
    assert_int_equal(share(&range), 0);
    assert_memory_equal(range.pages, range.window, SIZE);
    assert_int_equal(range.pages[0], 0);
    assert_int_equal(range.pages[PAGE], 7);
    range.pages[3] = 1;
    ((char *)range.window)[4] = 2;
    assert_int_equal(((char *)range.window)[3], 1);
    assert_int_equal(range.pages[4], 2);

    assert_int_equal(take_back(&range), 0);
    assert_memory_equal(range.pages, range.window, SIZE);
    memset(range.window, 9, SIZE);
    assert_int_equal(range.pages[3], 1);
    assert_int_equal(range.pages[PAGE], 7);
    end(&range);
}

/* Pages keep the protection that they had. */
static void parts_of_different_kinds(void **state)
{
    struct range_under_test range = make();
    struct page_area areas[16];

    (void)state;
    memset(range.pages, 5, SIZE);
    mprotect(range.pages + 2 * PAGE, PAGE, PROT_READ);
    assert_int_equal(share(&range), 0);
    assert_int_equal(look(&range, areas), 3);
    assert_int_equal(areas[1].protection, PROT_READ);
    assert_int_equal(range.pages[2 * PAGE], 5);
    assert_int_equal(take_back(&range), 0);
    assert_int_equal(look(&range, areas), 3);
    assert_int_equal(areas[1].protection, PROT_READ);
    assert_memory_equal(range.pages, range.window, SIZE);
    end(&range);
}

static void not_what_the_caller_stands_on(void **state)
{
    struct range_under_test range = make();
    char here[1];
    uint64_t first = (uintptr_t)here & ~(uint64_t)(PAGE - 1);
    const struct page_area area = {
        .start = first - PAGE, .size = 2 * PAGE, .protection = PROT_READ | PROT_WRITE};

    (void)state;
    assert_int_equal(pages_share(&area, 1, area.start, range.fd, range.window), -EOPNOTSUPP);
    end(&range);
}

struct writer {
    pthread_t thread;
    uint32_t *words; /* one in each page */
    atomic_bool *stop;
    uint32_t rounds;
};

static void *write_on(void *argument)
{
    struct writer *writer = argument;

    while (!atomic_load(writer->stop)) {
        for (unsigned page = 0; page < PAGES; page++)
            writer->words[page * (PAGE / 4)]++;
        writer->rounds++;
    }
    return NULL;
}

/* Also with pages that were never written to: not all of them are present at first. */
static void no_write_is_lost(void **state)
{
    struct range_under_test range = make();
    struct writer writers[THREADS];
    atomic_bool stop = false;
    int shared = 0;

    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){.words = (uint32_t *)(void *)range.pages + i, .stop = &stop};
        pthread_create(&writers[i].thread, NULL, write_on, &writers[i]);
    }
    for (int i = 0; i < 20; i++) {
        int r = share(&range);

        shared += r == 0;
        assert_true(r == 0 || r == -EOPNOTSUPP);
        assert_int_equal(take_back(&range), 0);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
        for (unsigned page = 0; page < PAGES; page++)
            assert_int_equal(writers[i].words[page * (PAGE / 4)], writers[i].rounds);
    }
    if (shared == 0)
        print_message("userfaultfd is not available here\n");
    end(&range);
}

/* ---- containers ---- */

/* As containers do by default. */
static bool forbid_userfaultfd(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* pages_share() beside a thread that writes. */
static int share_beside_writer(const struct range_under_test *range)
{
    atomic_bool stop = false;
    struct writer writer = {.words = (uint32_t *)(void *)range->pages, .stop = &stop};
    struct page_area areas[16];
    unsigned count = 0;
    int r;

    if (page_map_read(range->start, range->start + SIZE, areas, 16, &count) < 0 ||
        pthread_create(&writer.thread, NULL, write_on, &writer) != 0)
        return -EIO;
    r = pages_share(areas, count, range->start, range->fd, range->window);
    atomic_store(&stop, true);
    pthread_join(writer.thread, NULL);
    return r;
}

#define NOT_FORBIDDEN 255

/* In a child: 0, an error, or NOT_FORBIDDEN where the call cannot be forbidden. */
static int share_in_child(bool forbidden)
{
    struct range_under_test range = make();
    int status = 0;

    memset(range.pages, 1, SIZE);
    pid_t pid = fork();
    if (pid == 0)
        _exit(forbidden && !forbid_userfaultfd() ? NOT_FORBIDDEN : -share_beside_writer(&range));
    waitpid(pid, &status, 0);
    end(&range);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A device does as well, if the container has it, or else a handler of SIGSEGV. */
static void where_the_call_is_forbidden(void **state)
{
    int forbidden = share_in_child(true);

    (void)state;
    if (forbidden == NOT_FORBIDDEN)
        print_message("no system call can be forbidden here\n");
    else
        assert_true(forbidden == 0 || (!HAS_GUARD && forbidden == EOPNOTSUPP));
}

/* ---- memory of a file, which userfaultfd does not serve ---- */

#define FILE_PAGES 8u

/* As variables with an initial value lie there; there is always this program to map. */
static struct range_under_test map_own_file(void)
{
    struct range_under_test range = {.fd = -1};
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    range.pages = mmap(NULL, FILE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, program, 0);
    assert_true(range.pages != MAP_FAILED);
    close(program);
    range.start = (uintptr_t)range.pages;
    assert_int_equal(shm_create("test", FILE_PAGES * PAGE, &range.fd), 0);
    assert_int_equal(shm_map(range.fd, FILE_PAGES * PAGE, NULL, 0, &range.window), 0);
    return range;
}

static void unmap_own_file(struct range_under_test *range)
{
    munmap(range->pages, FILE_PAGES * PAGE);
    shm_unmap(range->window, FILE_PAGES * PAGE);
    fd_close(&range->fd);
}

static int share_own_file(const struct range_under_test *range)
{
    struct page_area area;
    unsigned count;

    assert_int_equal(
        page_map_read(range->start, range->start + FILE_PAGES * PAGE, &area, 1, &count), 0);
    return pages_share(&area, count, range->start, range->fd, range->window);
}

struct incrementer {
    pthread_t thread;
    uint32_t *word; /* of each page */
    atomic_bool *stop;
    atomic_uint rounds;
};

static void *increment(void *argument)
{
    struct incrementer *one = argument;

    while (!atomic_load(one->stop)) {
        for (unsigned page = 0; page < FILE_PAGES; page++)
            one->word[page * (PAGE / 4)]++;
        atomic_fetch_add(&one->rounds, 1);
    }
    return NULL;
}

static void share_beside_incrementers(struct range_under_test *range)
{
    struct incrementer all[THREADS];
    uint32_t before[THREADS][FILE_PAGES];
    atomic_bool stop = false;

    for (unsigned i = 0; i < THREADS; i++) {
        all[i] = (struct incrementer){.word = (uint32_t *)(void *)range->pages + i, .stop = &stop};
        for (unsigned page = 0; page < FILE_PAGES; page++)
            before[i][page] = all[i].word[page * (PAGE / 4)];
        pthread_create(&all[i].thread, NULL, increment, &all[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        while (!atomic_load(&all[i].rounds))
            usleep(100);
    assert_int_equal(share_own_file(range), 0);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, NULL);
        for (unsigned page = 0; page < FILE_PAGES; page++)
            assert_int_equal(all[i].word[page * (PAGE / 4)] - before[i][page], all[i].rounds);
    }
    assert_memory_equal(range->pages, range->window, FILE_PAGES * PAGE);
}

static void no_write_to_variables_is_lost(void **state)
{
    (void)state;
    for (unsigned i = 0; HAS_GUARD && i < 30; i++) {
        struct range_under_test range = map_own_file();

        share_beside_incrementers(&range);
        unmap_own_file(&range);
    }
}

/* ---- faults that have another reason ---- */

#define HANDLED 7

static void end_well(int number)
{
    _exit(HANDLED);
}

/* The program's own fault after pages were shared beside another thread. */
static int fault_in_child(void (*handler)(int))
{
    struct range_under_test range = map_own_file();
    int status = 0;

    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, handler);
        share_beside_incrementers(&range);
        mprotect(range.pages, PAGE, PROT_READ);
        *(volatile char *)range.pages = 1;
        _exit(0);
    }
    waitpid(pid, &status, 0);
    unmap_own_file(&range);
    return status;
}

static void faults_of_the_program(void **state)
{
    (void)state;
    if (!HAS_GUARD)
        return;
    int status = fault_in_child(SIG_DFL);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = fault_in_child(end_well);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HANDLED);
}

/* Files in memory are served by userfaultfd. */
static bool is_in_memory(void)
{
    struct statfs system;

    return statfs("/proc/self/exe", &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/* A thread that cannot be held back so. */
static void *block_all(void *argument)
{
    atomic_int *phase = argument;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    atomic_store(phase, 1);
    while (atomic_load(phase) != 2)
        usleep(100);
    return NULL;
}

static void a_thread_that_blocks_signals(void **state)
{
    struct range_under_test range = map_own_file();
    atomic_int phase = 0;
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, block_all, &phase);
    while (atomic_load(&phase) != 1)
        usleep(100);
    int r = share_own_file(&range);
    assert_true(r == -EOPNOTSUPP || is_in_memory());
    atomic_store(&phase, 2);
    pthread_join(thread, NULL);
    unmap_own_file(&range);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_stay),
        cmocka_unit_test(parts_of_different_kinds),
        cmocka_unit_test(not_what_the_caller_stands_on),
        cmocka_unit_test(no_write_is_lost),
        cmocka_unit_test(where_the_call_is_forbidden),
        cmocka_unit_test(faults_of_the_program), /* before this process has the handler */
        cmocka_unit_test(no_write_to_variables_is_lost),
        cmocka_unit_test(a_thread_that_blocks_signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
