/* SPDX-License-Identifier: Apache-2.0 */
/* From shared memory back to its file, which is found by a descriptor or by its name, or not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared_file.h"
#include "unit.h"

#define SIZE (4u * 4096u)

struct file {
    char name[64];
    int fd;
    void *pages;
};

static struct file make_file(void)
{
    struct file file = {.name = "/dev/shm/funnel shared-XXXXXX"};

    file.fd = mkstemp(file.name);
    assert_true(file.fd >= 0);
    assert_int_equal(ftruncate(file.fd, SIZE), 0);
    file.pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    assert_true(file.pages != MAP_FAILED);
    return file;
}

static struct page_area area_of(const void *pages)
{
    struct page_area area;
    unsigned count;

    assert_int_equal(page_map_read((uintptr_t)pages, (uintptr_t)pages + SIZE, &area, 1, &count), 0);
    assert_int_equal(count, 1);
    return area;
}

static void is_found(const struct file *file)
{
    const struct page_area area = area_of(file->pages);
    struct stat status;
    int fd;

    assert_true(shared_file_is(&area, 1));
    fd = shared_file_open(&area);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_ino, area.inode);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

/* Privileged processes may open what has no name any more. */
static bool is_privileged(const struct page_area *area)
{
    char name[96];
    int fd;

    snprintf(name, sizeof(name), "/proc/self/map_files/%llx-%llx", (unsigned long long)area->start,
             (unsigned long long)(area->start + area->size));
    fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void is_found_by_privilege(const struct file *file)
{
    const struct page_area area = area_of(file->pages);

    if (is_privileged(&area))
        is_found(file);
    else
        assert_int_equal(shared_file_open(&area), -ENOENT);
}

static void by_its_name(void **state)
{
    struct file file = make_file();
    char name[64];

    (void)state;
    close(file.fd);
    assert_int_equal(page_map_name((uintptr_t)file.pages, name, sizeof(name)), 0);
    assert_string_equal(name, file.name);
    assert_int_equal(page_map_name((uintptr_t)file.pages, name, 5), -ENAMETOOLONG);
    is_found(&file);
    unlink(file.name);
    is_found_by_privilege(&file);
    munmap(file.pages, SIZE);
}

static void by_a_descriptor(void **state)
{
    struct file file = make_file();

    (void)state;
    unlink(file.name);
    is_found(&file);
    close(file.fd);
    is_found_by_privilege(&file);
    munmap(file.pages, SIZE);
}

/* Another file, or something that is no file at all, has its name now. */
static void under_a_false_name(void **state)
{
    struct file file = make_file();
    int other;

    (void)state;
    close(file.fd);
    unlink(file.name);
    other = open(file.name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(other >= 0);
    is_found_by_privilege(&file);
    close(other);
    unlink(file.name);
    assert_int_equal(mkfifo(file.name, 0600), 0);
    is_found_by_privilege(&file);
    unlink(file.name);
    assert_int_equal(symlink("/dev/zero", file.name), 0);
    is_found_by_privilege(&file);
    unlink(file.name);
    munmap(file.pages, SIZE);
}

/* A descriptor through which nothing can be written is not taken. */
static void for_reading_alone(void **state)
{
    struct file file = make_file();
    int reader = open(file.name, O_RDONLY | O_CLOEXEC);

    (void)state;
    close(file.fd);
    unlink(file.name);
    is_found_by_privilege(&file);
    close(reader);
    munmap(file.pages, SIZE);
}

/* As a program makes it that forks: it never had a name. */
static void without_any_name(void **state)
{
    struct file file = {.fd = -1};

    (void)state;
    file.pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(file.pages != MAP_FAILED);
    is_found_by_privilege(&file);
    munmap(file.pages, SIZE);
}

static void mappings_of_one_file(void **state)
{
    struct page_area areas[2] = {
        {.start = 0x1000,
         .size = 0x2000,
         .protection = PROT_READ | PROT_WRITE,
         .shared = true,
         .device = 1,
         .inode = 2,
         .offset = 0x5000},
        {.start = 0x3000,
         .size = 0x1000,
         .protection = PROT_READ | PROT_WRITE,
         .shared = true,
         .device = 1,
         .inode = 2,
         .offset = 0x7000},
    };

    (void)state;
    assert_true(shared_file_is(areas, 2));
    assert_false(shared_file_is(areas, 0));
    areas[1].offset = 0x5000;
    assert_false(shared_file_is(areas, 2));
    areas[1].offset = 0x7000;
    areas[1].inode = 3;
    assert_false(shared_file_is(areas, 2));
    areas[1].inode = 2;
    areas[1].device = 2;
    assert_false(shared_file_is(areas, 2));
    areas[1].device = 1;
    areas[1].shared = false;
    assert_false(shared_file_is(areas, 2));
    areas[1].shared = true;
    areas[1].protection = PROT_READ;
    assert_false(shared_file_is(areas, 2));
    areas[0].inode = 0;
    assert_false(shared_file_is(areas, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_its_name),        cmocka_unit_test(by_a_descriptor),
        cmocka_unit_test(under_a_false_name), cmocka_unit_test(for_reading_alone),
        cmocka_unit_test(without_any_name),   cmocka_unit_test(mappings_of_one_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
