/* SPDX-License-Identifier: Apache-2.0 */
/* The fat binary reader: containers made here, entry by entry, one that nvcc made, and broken ones.
 * Broken ones lie in memory of exactly their size, so a sanitizer sees a byte too many. */
#include "unit.h"

#include <errno.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "fatbin.h"
#include "image_format.h"

#define TEXT_90 \
    ".version 9.0\n.target sm_90\n.address_size 64\n// ninety ninety ninety ninety ninety\n"
#define TEXT_80 ".version 8.0\n.target sm_80\n.address_size 64\n"

#define CONTAINER_HEADER_SIZE sizeof(struct image_container)
#define ENTRY_HEADER_SIZE sizeof(struct image_entry_header)
#define IN_CONTAINER(field) offsetof(struct image_container, field)
#define IN_ENTRY(field) offsetof(struct image_entry_header, field)

struct image {
    uint8_t bytes[8192];
    size_t size;
};

static void put(uint8_t *at, uint64_t value, size_t size)
{
    memcpy(at, &value, size);
}

static void image_begin(struct image *image)
{
    memset(image, 0, sizeof(*image));
    put(image->bytes, IMAGE_CONTAINER_MAGIC, 4);
    put(image->bytes + 4, 1, 2);
    put(image->bytes + IN_CONTAINER(header_size), CONTAINER_HEADER_SIZE, 2);
    image->size = CONTAINER_HEADER_SIZE;
}

static uint8_t *image_add(struct image *image, unsigned kind, unsigned sm, uint64_t flags,
                          const void *payload, size_t size, size_t plain_size)
{
    uint8_t *header = image->bytes + image->size;
    size_t padded = (size + 7) & ~(size_t)7;

    put(header + IN_ENTRY(kind), kind, 2);
    put(header + IN_ENTRY(header_size), ENTRY_HEADER_SIZE, 4);
    put(header + IN_ENTRY(payload_size), padded, 8);
    put(header + IN_ENTRY(sm), sm, 4);
    put(header + IN_ENTRY(flags), flags, 8);
    if (plain_size) {
        put(header + IN_ENTRY(compressed_size), size, 4);
        put(header + IN_ENTRY(plain_size), plain_size, 8);
    }
    memcpy(header + ENTRY_HEADER_SIZE, payload, size);
    image->size += ENTRY_HEADER_SIZE + padded;
    put(image->bytes + IN_CONTAINER(size), image->size - CONTAINER_HEADER_SIZE, 8);
    return header;
}

static void image_add_text(struct image *image, unsigned sm, uint64_t flags, const char *text)
{
    image_add(image, IMAGE_PTX, sm, flags, text, strlen(text), 0);
}

static int read_image(const struct image *image, struct fatbin_code *ret_code)
{
    struct fatbin_reason reason = {0};
    uint8_t *exact = malloc(image->size);
    int error;

    memcpy(exact, image->bytes, image->size);
    error = fatbin_read_container(exact, image->size, 90, ret_code, &reason);
    free(exact);
    assert_int_equal(error != 0, reason.text[0] != '\0');
    return error;
}

static void assert_chosen(const struct image *image, const char *text)
{
    struct fatbin_code code;

    assert_int_equal(read_image(image, &code), 0);
    assert_int_equal(code.count, 1);
    assert_string_equal(code.parts[0].text, text);
    assert_int_equal(code.parts[0].size, strlen(text));
    fatbin_code_fini(&code);
}

static void test_plain_text(void **state)
{
    struct image image;

    image_begin(&image);
    image_add_text(&image, 90, 0x11, TEXT_90);
    assert_chosen(&image, TEXT_90);
}

static void test_zstd(void **state)
{
    struct image image;
    char packed[512];
    size_t size = ZSTD_compress(packed, sizeof(packed), TEXT_90, sizeof(TEXT_90), 3);

    assert_false(ZSTD_isError(size));
    image_begin(&image);
    image_add(&image, IMAGE_PTX, 90, IMAGE_ZSTD, packed, size, sizeof(TEXT_90));
    assert_chosen(&image, TEXT_90);
}

static void test_lz4(void **state)
{
    struct image image;
    char packed[512];
    int size = LZ4_compress_default(TEXT_90, packed, sizeof(TEXT_90), sizeof(packed));

    assert_true(size > 0);
    image_begin(&image);
    image_add(&image, IMAGE_PTX, 90, IMAGE_LZ4, packed, size, sizeof(TEXT_90));
    assert_chosen(&image, TEXT_90);
}

/* Some compilers say less than it is. */
static void test_lz4_that_says_too_little(void **state)
{
    struct image image;
    char packed[512];
    int size = LZ4_compress_default(TEXT_90, packed, sizeof(TEXT_90), sizeof(packed));

    image_begin(&image);
    image_add(&image, IMAGE_PTX, 90, IMAGE_LZ4, packed, size, 10);
    assert_chosen(&image, TEXT_90);
}

static void test_the_newest_that_runs(void **state)
{
    struct image image;

    image_begin(&image);
    image_add(&image, IMAGE_ELF, 90, 0, "\177ELF", 4, 0);
    image_add_text(&image, 80, 0, TEXT_80);
    image_add_text(&image, 90, 0, TEXT_90);
    image_add_text(&image, 100, 0, "a newer device's");
    assert_chosen(&image, TEXT_90);
}

static void test_specific_code(void **state)
{
    struct image image;

    image_begin(&image);
    image_add_text(&image, 80, 0, TEXT_80);
    image_add_text(&image, 89, IMAGE_ARCH_SPECIFIC, "for exactly 8.9");
    assert_chosen(&image, TEXT_80);
    image_add_text(&image, 90, IMAGE_ARCH_SPECIFIC, TEXT_90);
    image_add_text(&image, 90, 0, "for any 9.0");
    assert_chosen(&image, TEXT_90);
    image_begin(&image);
    image_add_text(&image, 80, 0, TEXT_80);
    image_add_text(&image, 100, IMAGE_FAMILY_SPECIFIC, "another family's");
    assert_chosen(&image, TEXT_80);
}

static void test_nothing_that_runs(void **state)
{
    struct fatbin_code code;
    struct image image;

    image_begin(&image);
    assert_int_equal(read_image(&image, &code), -ENOEXEC);
    image_add(&image, IMAGE_ELF, 90, 0, "\177ELF", 4, 0);
    assert_int_equal(read_image(&image, &code), -ENOEXEC);
    image_add_text(&image, 100, 0, "a newer device's");
    assert_int_equal(read_image(&image, &code), -ENOEXEC);
}

static void test_every_truncation(void **state)
{
    struct fatbin_code code;
    struct image image;

    image_begin(&image);
    image_add_text(&image, 80, 0, TEXT_80);
    image_add_text(&image, 90, 0, TEXT_90);
    for (size_t whole = image.size; image.size-- > 1;) {
        put(image.bytes + IN_CONTAINER(size), whole - CONTAINER_HEADER_SIZE, 8);
        assert_int_equal(read_image(&image, &code), -EINVAL);
        if (image.size <= CONTAINER_HEADER_SIZE)
            continue;
        put(image.bytes + IN_CONTAINER(size), image.size - CONTAINER_HEADER_SIZE, 8);
        if (read_image(&image, &code) == 0)
            fatbin_code_fini(&code);
    }
}

static void test_sizes_that_lie(void **state)
{
    static const uint64_t lies[] = {UINT64_MAX, UINT64_MAX - 63, 1ull << 63, 1ull << 32, 0x10000};
    struct fatbin_code code;

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct image image;
        uint8_t *header;

        image_begin(&image);
        header = image_add(&image, IMAGE_PTX, 90, 0, TEXT_90, sizeof(TEXT_90), 0);
        put(header + IN_ENTRY(payload_size), lies[i], 8);
        assert_int_equal(read_image(&image, &code), -EINVAL);
        put(image.bytes + IN_CONTAINER(size), lies[i], 8);
        assert_int_equal(read_image(&image, &code), -EINVAL);
    }
}

static void test_headers_that_lie(void **state)
{
    struct fatbin_code code;
    struct image image;
    uint8_t *header;

    image_begin(&image);
    header = image_add(&image, IMAGE_PTX, 90, 0, TEXT_90, sizeof(TEXT_90), 0);
    put(header + IN_ENTRY(header_size), 8, 4);
    assert_int_equal(read_image(&image, &code), -EINVAL);
    put(header + IN_ENTRY(header_size), UINT32_MAX, 4);
    assert_int_equal(read_image(&image, &code), -EINVAL);
    put(header + IN_ENTRY(header_size), ENTRY_HEADER_SIZE, 4);
    put(image.bytes + IN_CONTAINER(header_size), 0xffff, 2);
    assert_int_equal(read_image(&image, &code), -EINVAL);
}

/* A claim of terabytes must not become an allocation of them. */
static void test_bombs(void **state)
{
    static const uint64_t flags[] = {IMAGE_ZSTD, IMAGE_LZ4};
    struct fatbin_code code;

    for (int i = 0; i < 2; i++) {
        struct image image;

        image_begin(&image);
        image_add(&image, IMAGE_PTX, 90, flags[i], "nonsense", 8, 1ull << 40);
        assert_int_equal(read_image(&image, &code), -EINVAL);
        image_begin(&image);
        image_add(&image, IMAGE_PTX, 90, flags[i], "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 4096);
        assert_int_equal(read_image(&image, &code), -EINVAL);
    }
}

static void test_bare_text(void **state)
{
    struct fatbin_reason reason = {0};
    struct fatbin_code code;

    assert_int_equal(fatbin_read("\n" TEXT_90, 90, &code, &reason), 0);
    assert_string_equal(code.parts[0].text, "\n" TEXT_90);
    fatbin_code_fini(&code);
}

static void test_bytes_that_are_no_image(void **state)
{
    struct fatbin_reason reason = {0};
    struct fatbin_code code;

    assert_int_equal(fatbin_read("\177ELF\2\1\1A", 90, &code, &reason), -ENOEXEC);
    assert_non_null(strstr(reason.text, "machine code"));
    assert_int_equal(fatbin_read("\0\0\0\0", 90, &code, &reason), -EINVAL);
    assert_int_equal(fatbin_read("\1\2\3\4", 90, &code, &reason), -EINVAL);
}

static void test_wrapper(void **state)
{
    struct fatbin_reason reason = {0};
    struct image_wrapper wrapper = {.magic = IMAGE_WRAPPER_MAGIC, .version = 1};
    struct fatbin_code code;
    struct image image;

    image_begin(&image);
    image_add_text(&image, 80, 0, TEXT_80);
    wrapper.linked = image.bytes;
    assert_int_equal(fatbin_read(&wrapper, 90, &code, &reason), 0);
    assert_string_equal(code.parts[0].text, TEXT_80);
    fatbin_code_fini(&code);
    wrapper.version = 3;
    assert_int_equal(fatbin_read(&wrapper, 90, &code, &reason), -EINVAL);
}

/* The linked container has machine code only; the inputs have the PTX. */
static void test_relocatable(void **state)
{
    struct fatbin_reason reason = {0};
    struct fatbin_code code;
    struct image linked, one, empty, other;
    const void *const inputs[] = {one.bytes, empty.bytes, other.bytes, NULL};
    struct image_wrapper wrapper = {IMAGE_WRAPPER_MAGIC, 2, linked.bytes, inputs};

    image_begin(&linked);
    image_add(&linked, IMAGE_ELF, 90, 0, "\177ELF", 4, 0);
    image_begin(&one);
    image_add_text(&one, 80, 0, TEXT_80);
    image_begin(&empty);
    image_begin(&other);
    image_add_text(&other, 90, 0, TEXT_90);
    assert_int_equal(fatbin_read(&wrapper, 90, &code, &reason), 0);
    assert_int_equal(code.count, 2);
    assert_string_equal(code.parts[0].text, TEXT_80);
    assert_string_equal(code.parts[1].text, TEXT_90);
    fatbin_code_fini(&code);
}

static void test_fat_binaries_of_nvcc(void **state)
{
    static uint8_t bytes[1 << 20];
    struct fatbin_reason reason = {0};
    struct fatbin_code code;
    FILE *file = fopen(NVCC_FATBIN, "rb");

    assert_non_null(file);
    assert_int_equal(
        fatbin_read_container(bytes, fread(bytes, 1, sizeof(bytes), file), 90, &code, &reason), 0);
    fclose(file);
    assert_non_null(strstr(code.parts[0].text, ".version"));
    assert_non_null(strstr(code.parts[0].text, ".entry"));
    fatbin_code_fini(&code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_zstd),
        cmocka_unit_test(test_lz4),
        cmocka_unit_test(test_lz4_that_says_too_little),
        cmocka_unit_test(test_the_newest_that_runs),
        cmocka_unit_test(test_specific_code),
        cmocka_unit_test(test_nothing_that_runs),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_sizes_that_lie),
        cmocka_unit_test(test_headers_that_lie),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_bare_text),
        cmocka_unit_test(test_bytes_that_are_no_image),
        cmocka_unit_test(test_wrapper),
        cmocka_unit_test(test_relocatable),
        cmocka_unit_test(test_fat_binaries_of_nvcc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
