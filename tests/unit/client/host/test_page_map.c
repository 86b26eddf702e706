/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what the kernel says of this process's memory. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "page_map.h"

static void lines(void **state)
{
    struct page_area area;

    (void)state;
    assert_true(page_map_parse("7f00a000-7f00c000 rw-p 00001000 fe:01 77    /lib/x y.so", &area));
    assert_int_equal(area.start, 0x7f00a000);
    assert_int_equal(area.size, 0x2000);
    assert_int_equal(area.protection, PROT_READ | PROT_WRITE);
    assert_int_equal(area.offset, 0x1000);
    assert_int_equal(area.inode, 77);
    assert_false(area.shared || area.special);
    assert_true(page_map_parse("7f00a000-7f00c000 r-xs 00000000 00:00 0 ", &area));
    assert_int_equal(area.protection, PROT_READ | PROT_EXEC);
    assert_true(area.shared);
    assert_true(page_map_parse("1000-2000 rw-p 00000000 00:00 0          [stack]", &area));
    assert_true(area.special);
    assert_true(page_map_parse("1000-2000 rw-p 00000000 00:00 0          [heap]", &area));
    assert_false(area.special);
    assert_true(page_map_parse("1000-2000 rw-p 00000000 00:00 0          [anon:x]", &area));
    assert_false(area.special);
    assert_false(page_map_parse("", &area));
    assert_false(page_map_parse("1000-2000", &area));
    assert_false(page_map_parse("1000-2000 rw", &area));
    assert_false(page_map_parse("1000-2000 rw-p 0 0 0", &area));
}

static void areas_of_this_process(void **state)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t start = (uintptr_t)pages + page, end = start + 6 * page;
    struct page_area areas[4];
    unsigned count;

    (void)state;
    assert_int_equal(mprotect(pages + 3 * page, page, PROT_READ), 0);
    assert_int_equal(page_map_read(start, end, areas, 4, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(areas[0].start, start);
    assert_int_equal(areas[0].size, 2 * page);
    assert_int_equal(areas[1].protection, PROT_READ);
    assert_int_equal(areas[2].size, 3 * page);
    assert_true(page_map_fills(areas, count, start, end));
    assert_int_equal(page_map_read(start, end, areas, 2, &count), -E2BIG);

    munmap(pages + 3 * page, page);
    assert_int_equal(page_map_read(start, end, areas, 4, &count), 0);
    assert_false(page_map_fills(areas, count, start, end));
    munmap(pages, 8 * page);
}

static void threads(void **state)
{
    (void)state;
    assert_int_equal(page_map_threads(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(areas_of_this_process),
        cmocka_unit_test(threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
