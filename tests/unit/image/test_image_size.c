/* SPDX-License-Identifier: Apache-2.0 */
/* How long is a code image: each format by hand, and what only looks like one. */
#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_format.h"
#include "image_inputs.h"
#include "image_size.h"
#include "image_suits.h"

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

/* ---- what separately compiled code was linked from ---- */

static void test_inputs_are_told(void **state)
{
    struct container linked = sample_container(), input = sample_container();
    const void *inputs[] = {&input, NULL};
    struct wrapper wrapper = {0x466243b1, 2, &linked, inputs};

    assert_true(image_has_inputs(&wrapper));
    assert_false(image_has_only_inputs(&wrapper));
    linked.size = 0;
    assert_true(image_has_only_inputs(&wrapper));
    wrapper.data = NULL;
    assert_true(image_has_only_inputs(&wrapper));
    inputs[0] = NULL;
    assert_false(image_has_inputs(&wrapper));
    assert_false(image_has_only_inputs(&wrapper));
    wrapper = (struct wrapper){0x466243b1, 1, &linked, "a file's name"};
    assert_false(image_has_inputs(&wrapper));
    assert_false(image_has_inputs(&linked));
    assert_false(image_has_inputs(".version 8.0"));
    char *text = strdup("");
    assert_false(image_has_inputs(text));
    assert_false(image_has_only_inputs(text));
    free(text);
}

static void test_inputs_are_gathered_on_multiples_of_8(void **state)
{
    struct container one = sample_container(), two = sample_container();
    const void *inputs[] = {&one, &two, NULL};
    struct wrapper wrapper = {0x466243b1, 2, NULL, inputs};
    struct image_container nothing;
    char *bytes;
    size_t size;

    one.size = 61;
    memset(one.entries, 'x', sizeof(one.entries));
    assert_int_equal(image_gather_inputs(&wrapper, (void **)&bytes, &size), 0);
    assert_int_equal(size, 16 + 80 + 80);
    memcpy(&nothing, bytes, sizeof(nothing));
    assert_int_equal(nothing.magic, 0xba55ed50);
    assert_int_equal(nothing.header_size, 16);
    assert_int_equal(nothing.size, 0);
    assert_memory_equal(bytes + 16, &one, 16 + 61);
    assert_memory_equal(bytes + 16 + 77, "\0\0\0", 3);
    assert_memory_equal(bytes + 16 + 80, &two, 80);
    free(bytes);
}

static void test_a_linked_image_goes_along(void **state)
{
    struct container linked = sample_container(), input = sample_container();
    const void *inputs[] = {&input, NULL};
    struct wrapper wrapper = {0x466243b1, 2, &linked, inputs};
    char *bytes;
    size_t size;

    memset(linked.entries, 'l', sizeof(linked.entries));
    assert_int_equal(image_gather_inputs(&wrapper, (void **)&bytes, &size), 0);
    assert_int_equal(size, 80 + 80);
    assert_memory_equal(bytes, &linked, 80);
    assert_memory_equal(bytes + 80, &input, 80);
    free(bytes);
}

struct one_entry {
    struct image_container header;
    unsigned char entry[64];
};

static struct one_entry entry_for(uint16_t kind, uint32_t sm)
{
    const uint32_t entry_header_size = 64;
    struct one_entry container = {{0xba55ed50, 1, 16, 64}, {0}};

    memcpy(container.entry, &kind, 2);
    memcpy(container.entry + 4, &entry_header_size, 4);
    memcpy(container.entry + 28, &sm, 4);
    return container;
}

static bool suits(uint16_t kind, uint32_t entry_sm, unsigned sm)
{
    const struct one_entry container = entry_for(kind, entry_sm);

    return image_suits(&container, sizeof(container), sm);
}

static bool machine_code_suits(unsigned char system, uint32_t flags, unsigned sm)
{
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', [EI_OSABI] = system}, .e_flags = flags};

    return image_suits(&header, sizeof(header), sm);
}

/* The headers are those of nvcc 11.8, and of nvcc 13.0. */
static void test_devices_that_machine_code_suits(void **state)
{
    assert_true(machine_code_suits(0x33, 0x500550, 86));
    assert_false(machine_code_suits(0x33, 0x500550, 90));
    assert_true(machine_code_suits(0x41, 0x6005a04, 90));
    assert_false(machine_code_suits(0x41, 0x6005a04, 80));
    assert_false(machine_code_suits(0x41, 0x6007802, 90));
    assert_true(machine_code_suits(0, 0x6007802, 90));
    assert_true(image_suits("\177ELF", 5, 90));
}

static void test_devices_that_an_image_suits(void **state)
{
    const struct image_container empty = {0xba55ed50, 1, 16, 0};

    assert_true(suits(IMAGE_ELF, 90, 90));
    assert_true(suits(IMAGE_ELF, 80, 86));
    assert_false(suits(IMAGE_ELF, 75, 90));
    assert_false(suits(IMAGE_ELF, 86, 80));
    assert_true(suits(IMAGE_PTX, 75, 90));
    assert_false(suits(IMAGE_PTX, 100, 90));
    assert_true(suits(77, 75, 90));
    assert_true(image_suits(&empty, sizeof(empty), 90));
    assert_true(image_suits(".version 8.0", 12, 90));
}

struct code_entry {
    struct image_container header;
    struct image_entry_header entry;
    Elf64_Ehdr code;
};

/* Machine code of nvcc 13 for compute capability 9.0. */
static struct code_entry entry_with_code(uint16_t kind, uint64_t flags)
{
    const Elf64_Ehdr code = {.e_ident = {0x7f, 'E', 'L', 'F', [EI_OSABI] = 0x41},
                             .e_flags = 0x6005a04};
    const struct image_entry_header entry = {
        .kind = kind,
        .header_size = sizeof(entry),
        .payload_size = sizeof(code),
        .sm = 90,
        .flags = flags,
    };

    return (struct code_entry){
        {IMAGE_CONTAINER_MAGIC, 1, 16, sizeof(entry) + sizeof(code)}, entry, code};
}

static bool has_code(const struct code_entry *container, unsigned sm)
{
    const void *code;
    size_t size;

    if (!image_find_machine_code(container, sizeof(*container), sm, &code, &size))
        return false;
    assert_ptr_equal(code, &container->code);
    assert_int_equal(size, sizeof(container->code));
    return true;
}

static void test_machine_code_is_found(void **state)
{
    const struct code_entry plain = entry_with_code(IMAGE_ELF, 0);
    const struct code_entry compressed = entry_with_code(IMAGE_ELF, IMAGE_ZSTD);
    const struct code_entry text = entry_with_code(IMAGE_PTX, 0);
    const void *code;
    size_t size;

    assert_true(has_code(&plain, 90));
    assert_false(has_code(&plain, 80));
    assert_false(has_code(&compressed, 90));
    assert_false(has_code(&text, 90));
    assert_true(image_find_machine_code(&plain.code, sizeof(plain.code), 90, &code, &size));
    assert_ptr_equal(code, &plain.code);
    assert_false(image_find_machine_code(".version 8.0", 12, 90, &code, &size));
}

static void test_inputs_with_nonsense_are_refused(void **state)
{
    static const void *many[IMAGE_INPUTS_MAX + 2];
    struct container input = sample_container();
    const void *inputs[] = {&input, ".version 8.0\n and more", NULL};
    struct wrapper wrapper = {0x466243b1, 2, NULL, inputs};
    void *bytes;
    size_t size;

    assert_int_equal(image_gather_inputs(&wrapper, &bytes, &size), -EINVAL);
    inputs[1] = NULL;
    input.size = UINT64_MAX;
    assert_int_equal(image_gather_inputs(&wrapper, &bytes, &size), -EINVAL);
    input.size = 64;
    for (unsigned i = 0; i <= IMAGE_INPUTS_MAX; i++)
        many[i] = &input;
    wrapper.files = many;
    assert_int_equal(image_gather_inputs(&wrapper, &bytes, &size), -EINVAL);
    many[IMAGE_INPUTS_MAX] = NULL;
    assert_int_equal(image_gather_inputs(&wrapper, &bytes, &size), 0);
    assert_int_equal(size, 16 + 80 * IMAGE_INPUTS_MAX);
    free(bytes);
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
    file.sections[1].sh_offset = 1ull << 40; /* the only part that does not fit */
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
        cmocka_unit_test(test_inputs_are_told),
        cmocka_unit_test(test_inputs_are_gathered_on_multiples_of_8),
        cmocka_unit_test(test_a_linked_image_goes_along),
        cmocka_unit_test(test_devices_that_an_image_suits),
        cmocka_unit_test(test_devices_that_machine_code_suits),
        cmocka_unit_test(test_machine_code_is_found),
        cmocka_unit_test(test_inputs_with_nonsense_are_refused),
        cmocka_unit_test(test_elf_ends_with_its_last_section),
        cmocka_unit_test(test_elf_with_nonsense_is_refused),
        cmocka_unit_test(test_archive_is_walked),
        cmocka_unit_test(test_garbage_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
