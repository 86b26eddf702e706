/* SPDX-License-Identifier: Apache-2.0 */
/* How long is a code image: each format by hand, and what only looks like one. */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "image_size.h"

struct container {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
    unsigned char entries[64];
};

struct wrapper {
    uint32_t magic, version;
    const void *data, *files;
};

static struct container sample_container(void)
{
    return (struct container){.magic = 0xba55ed50, .version = 1, .header_size = 16, .size = 64};
}

static void test_text_ends_with_its_nul(void **state)
{
    const char text[] = ".version 8.0\n.target sm_80\n";
    const void *image;
    size_t size;

    assert_true(image_find(text, &image, &size));
    assert_ptr_equal(image, text);
    assert_int_equal(size, sizeof(text));
}

static void test_container_says_its_size(void **state)
{
    struct container container = sample_container();
    const void *image;
    size_t size;

    assert_true(image_find(&container, &image, &size));
    assert_ptr_equal(image, &container);
    assert_int_equal(size, 16 + 64);
}

static void test_wrapper_leads_to_the_container(void **state)
{
    struct container container = sample_container();
    struct wrapper wrapper = {0x466243b1, 1, &container, NULL};
    const void *image;
    size_t size;

    assert_true(image_find(&wrapper, &image, &size));
    assert_ptr_equal(image, &container);
    assert_int_equal(size, 80);
    wrapper.data = NULL;
    assert_false(image_find(&wrapper, &image, &size));
}

static void test_container_with_nonsense_is_refused(void **state)
{
    struct container container = sample_container();
    const void *image;
    size_t size;

    container.size = UINT64_MAX;
    assert_false(image_find(&container, &image, &size));
    container = sample_container();
    container.header_size = 8;
    assert_false(image_find(&container, &image, &size));
}

struct elf_file {
    Elf64_Ehdr header;
    Elf64_Shdr sections[2];
    unsigned char data[100];
};

static struct elf_file sample_elf(void)
{
    struct elf_file file = {0};

    memcpy(file.header.e_ident, ELFMAG, SELFMAG);
    file.header.e_ident[EI_CLASS] = ELFCLASS64;
    file.header.e_shoff = offsetof(struct elf_file, sections);
    file.header.e_shnum = 2;
    file.header.e_shentsize = sizeof(Elf64_Shdr);
    file.sections[0].sh_type = SHT_NOBITS;
    file.sections[0].sh_offset = 0;
    file.sections[0].sh_size = 1 << 20;
    file.sections[1].sh_type = SHT_PROGBITS;
    file.sections[1].sh_offset = offsetof(struct elf_file, data);
    file.sections[1].sh_size = 100;
    return file;
}

static void test_elf_ends_with_its_last_section(void **state)
{
    struct elf_file file = sample_elf();
    const void *image;
    size_t size;

    assert_true(image_find(&file, &image, &size));
    assert_int_equal(size, offsetof(struct elf_file, data) + 100);
}

static void test_elf_with_nonsense_is_refused(void **state)
{
    struct elf_file file = sample_elf();
    const void *image;
    size_t size;

    file.header.e_shentsize = 8;
    assert_false(image_find(&file, &image, &size));
    file = sample_elf();
    file.header.e_shoff = UINT64_MAX - 7;
    assert_false(image_find(&file, &image, &size));
    file = sample_elf();
    file.header.e_ident[EI_CLASS] = ELFCLASS32;
    assert_false(image_find(&file, &image, &size));
}

static void test_archive_is_walked(void **state)
{
    char archive[256] = "!<arch>\n";
    const void *image;
    size_t size;

    snprintf(archive + 8, 61, "%-48s%-10d`\n", "member", 5);
    memcpy(archive + 68, "12345\n", 6);
    assert_true(image_find(archive, &image, &size));
    assert_int_equal(size, 8 + 60 + 6);
}

static void test_garbage_is_refused(void **state)
{
    unsigned char garbage[64];
    const void *image;
    size_t size;

    memset(garbage, 0xa5, sizeof(garbage));
    assert_false(image_find(garbage, &image, &size));
    memset(garbage, 0, sizeof(garbage));
    assert_false(image_find(garbage, &image, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_ends_with_its_nul),
        cmocka_unit_test(test_container_says_its_size),
        cmocka_unit_test(test_wrapper_leads_to_the_container),
        cmocka_unit_test(test_container_with_nonsense_is_refused),
        cmocka_unit_test(test_elf_ends_with_its_last_section),
        cmocka_unit_test(test_elf_with_nonsense_is_refused),
        cmocka_unit_test(test_archive_is_walked),
        cmocka_unit_test(test_garbage_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
