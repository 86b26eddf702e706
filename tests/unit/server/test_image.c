/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images whose headers claim more than there is.
 */
#include <elf.h>
#include <string.h>

#include "image.h"
#include "unit.h"

/* A container of two entries with 64 byte headers and payloads of 8 and 16 bytes. */
static size_t make_container(unsigned char *bytes)
{
    uint32_t magic = 0xba55ed50, header_size = 64;
    uint16_t version = 1, container_header = 16;
    uint64_t entries = 64 + 8 + 64 + 16, payload = 8;

    memset(bytes, 0, 16 + entries);
    memcpy(bytes, &magic, 4);
    memcpy(bytes + 4, &version, 2);
    memcpy(bytes + 6, &container_header, 2);
    memcpy(bytes + 8, &entries, 8);
    memcpy(bytes + 16 + 4, &header_size, 4);
    memcpy(bytes + 16 + 8, &payload, 8);
    payload = 16;
    memcpy(bytes + 16 + 72 + 4, &header_size, 4);
    memcpy(bytes + 16 + 72 + 8, &payload, 8);
    return 16 + entries;
}

static void container_cut_anywhere_is_refused(void **state)
{
    unsigned char bytes[256];
    size_t size = make_container(bytes);

    (void)state;
    assert_true(image_is_sound(bytes, size));
    for (size_t cut = 0; cut < size; cut++)
        assert_false(image_is_sound(bytes, cut));
}

static void container_with_a_lie_is_refused(void **state)
{
    unsigned char bytes[256];
    size_t size = make_container(bytes);
    const uint64_t lies[] = {9, 1ull << 32, UINT64_MAX, UINT64_MAX - 63};

    (void)state;
    for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        make_container(bytes);
        memcpy(bytes + 16 + 72 + 8, &lies[i], 8);
        assert_false(image_is_sound(bytes, size));
    }
    make_container(bytes);
    memset(bytes + 16 + 4, 0, 4); /* a header of no size would never end */
    assert_false(image_is_sound(bytes, size));
}

static size_t make_elf(unsigned char *bytes)
{
    Elf64_Ehdr header = {
        .e_shoff = sizeof(header), .e_shnum = 1, .e_shentsize = sizeof(Elf64_Shdr)};
    Elf64_Shdr section = {.sh_type = SHT_PROGBITS, .sh_offset = 128, .sh_size = 32};

    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    memset(bytes, 0, 160);
    memcpy(bytes, &header, sizeof(header));
    memcpy(bytes + sizeof(header), &section, sizeof(section));
    return 160;
}

static void elf_cut_anywhere_is_refused(void **state)
{
    unsigned char bytes[160];
    size_t size = make_elf(bytes);

    (void)state;
    assert_true(image_is_sound(bytes, size));
    for (size_t cut = 0; cut < size; cut++)
        assert_false(image_is_sound(bytes, cut));
}

static void text_is_told_from_garbage(void **state)
{
    (void)state;
    assert_true(image_is_sound(".version 8.0\n", 13));
    assert_true(image_is_sound("\n\n// PTX\n.version", 17));
    assert_false(image_is_sound("garbage", 7));
    assert_false(image_is_sound("    ", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(container_cut_anywhere_is_refused),
        cmocka_unit_test(container_with_a_lie_is_refused),
        cmocka_unit_test(elf_cut_anywhere_is_refused),
        cmocka_unit_test(text_is_told_from_garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
