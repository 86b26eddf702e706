/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are cut short under a mapping: what is guarded becomes zero pages, all else ends the
 * process as ever.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_guard.h"
#include "unit.h"

#define PAGE 4096u
#define PAGES 8u

struct mapping {
    int fd;
    volatile char *bytes;
};

static struct mapping map_file(void)
{
    struct mapping made = {.fd = memfd_create("file", MFD_CLOEXEC)};

    assert_int_equal(ftruncate(made.fd, PAGES * PAGE), 0);
    made.bytes = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
    assert_true(made.bytes != MAP_FAILED);
    memset((char *)made.bytes, 7, PAGES * PAGE);
    return made;
}

static void unmap_file(struct mapping mapping)
{
    munmap((char *)mapping.bytes, PAGES * PAGE);
    close(mapping.fd);
}

static void guard(struct mapping mapping)
{
    assert_int_equal(file_guard_init(), 0); /* each test begins with another handler */
    assert_int_equal(file_guard_add((uintptr_t)mapping.bytes, PAGES * PAGE), 0);
}

static bool unguard(struct mapping mapping)
{
    return file_guard_remove((uintptr_t)mapping.bytes);
}

static void guarded_memory(void **state)
{
    struct mapping cut = map_file(), whole = map_file();

    (void)state;
    guard(cut);
    guard(whole);
    assert_int_equal(ftruncate(cut.fd, PAGE), 0);
    cut.bytes[(PAGES - 1) * PAGE] = 5; /* here the handler comes in */
    assert_int_equal(cut.bytes[(PAGES - 1) * PAGE], 5);
    assert_int_equal(cut.bytes[2 * PAGE], 0);
    assert_int_equal(cut.bytes[0], 0);
    assert_int_equal(whole.bytes[(PAGES - 1) * PAGE], 7);
    assert_true(unguard(cut));
    assert_false(unguard(whole));
    assert_false(unguard(whole));
    unmap_file(cut);
    unmap_file(whole);
}

/* More at a time than there were before, in any order of removal. */
static void many(void **state)
{
    struct mapping mappings[20];

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 20; i++) {
            mappings[i] = map_file();
            guard(mappings[i]);
        }
        for (unsigned i = 0; i < 20; i++)
            assert_int_equal(ftruncate(mappings[i].fd, 0), 0);
        for (unsigned i = round; i < 20; i++)
            assert_int_equal(mappings[i].bytes[i * 100], 0);
        for (unsigned i = 0; i < 20; i++)
            assert_int_equal(unguard(mappings[i * 7 % 20]), i * 7 % 20 >= round);
        for (unsigned i = 0; i < 20; i++)
            unmap_file(mappings[i]);
    }
}

static int signal_of_access(const volatile char *byte)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGBUS, SIG_DFL);
        file_guard_init();
        (void)*byte;
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void all_else_ends_the_process(void **state)
{
    struct mapping other = map_file(), guarded = map_file();

    (void)state;
    guard(guarded);
    assert_int_equal(ftruncate(other.fd, 0), 0);
    assert_int_equal(ftruncate(guarded.fd, 0), 0);
    assert_int_equal(signal_of_access(guarded.bytes), 0);
    assert_int_equal(signal_of_access(other.bytes), SIGBUS);
    unguard(guarded);
    assert_int_equal(signal_of_access(guarded.bytes), SIGBUS);
    unmap_file(other);
    unmap_file(guarded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guarded_memory),
        cmocka_unit_test(many),
        cmocka_unit_test(all_else_ends_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
