/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images whose headers claim more than there is.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "image_bundle.h"
#include "image_check.h"
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

/* ---- bundles ---- */

static size_t put_empty(unsigned char *bytes)
{
    const struct image_container empty = {
        .magic = IMAGE_CONTAINER_MAGIC, .version = 1, .header_size = sizeof(empty)};

    memcpy(bytes, &empty, sizeof(empty));
    return sizeof(empty);
}

#define ONE 168u /* the size of what make_container makes */

static size_t make_bundle(unsigned char *bytes)
{
    size_t size = put_empty(bytes);

    size += make_container(bytes + size);
    return size + make_container(bytes + size);
}

static void bundle_cut_anywhere_is_refused(void **state)
{
    unsigned char bytes[512];
    size_t size = make_bundle(bytes);

    (void)state;
    assert_int_equal(size, 16 + 2 * ONE);
    assert_true(image_is_sound(bytes, size));
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(image_is_sound(bytes, cut), cut == 16 || cut == 16 + ONE);
}

static void bundle_with_a_lie_is_refused(void **state)
{
    unsigned char bytes[512];
    size_t size = make_bundle(bytes);
    const uint64_t lies[] = {0, 1, ONE, ONE + 8, 1ull << 32, UINT64_MAX, UINT64_MAX - 15};

    (void)state;
    for (unsigned container = 0; container < 3; container++) {
        for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
            make_bundle(bytes);
            if (container == 0 && lies[i] == 0)
                continue; /* which is true */
            memcpy(bytes + (container ? 16 + (container - 1) * ONE : 0) + 8, &lies[i], 8);
            assert_false(image_is_sound(bytes, size));
        }
    }
    make_bundle(bytes);
    memset(bytes + 16 + 6, 0, 2); /* a header of no size */
    assert_false(image_is_sound(bytes, size));
    make_bundle(bytes);
    bytes[16 + ONE] ^= 1; /* no container */
    assert_false(image_is_sound(bytes, size));
}

static void bundle_has_a_limit(void **state)
{
    const size_t count = IMAGE_INPUTS_MAX + 2;
    unsigned char *bytes = malloc(count * 16);

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        put_empty(bytes + i * 16);
    assert_true(image_is_sound(bytes, (count - 1) * 16));
    assert_false(image_is_sound(bytes, count * 16));
    free(bytes);
}

static void bundle_is_wrapped_for_the_driver(void **state)
{
    unsigned char bytes[512];
    size_t size = make_bundle(bytes);
    struct image_wrapper *wrapper;

    (void)state;
    assert_false(image_is_bundle(bytes, 16));
    assert_false(image_is_bundle(bytes + 16, ONE));
    assert_false(image_is_bundle(".version 8.0\n", 13));
    assert_true(image_is_bundle(bytes, size));
    assert_true(image_wrap(bytes, size, &wrapper));
    assert_int_equal(wrapper->magic, 0x466243b1);
    assert_int_equal(wrapper->version, 2);
    assert_ptr_equal(wrapper->linked, bytes);
    assert_ptr_equal(wrapper->inputs[0], bytes + 16);
    assert_ptr_equal(wrapper->inputs[1], bytes + 16 + ONE);
    assert_null(wrapper->inputs[2]);
    free(wrapper);
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
        cmocka_unit_test(bundle_cut_anywhere_is_refused),
        cmocka_unit_test(bundle_with_a_lie_is_refused),
        cmocka_unit_test(bundle_has_a_limit),
        cmocka_unit_test(bundle_is_wrapped_for_the_driver),
        cmocka_unit_test(elf_cut_anywhere_is_refused),
        cmocka_unit_test(text_is_told_from_garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
