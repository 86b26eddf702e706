/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a fat binary for some devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_check.h"
#include "image_container.h"
#include "image_trim.h"
#include "unit.h"

struct fat_binary {
    unsigned char bytes[4096];
    size_t size;
};

static struct fat_binary empty(void)
{
    const struct image_container header = {
        .magic = IMAGE_CONTAINER_MAGIC, .version = 1, .header_size = sizeof(header)};
    struct fat_binary binary = {.size = sizeof(header)};

    memcpy(binary.bytes, &header, sizeof(header));
    return binary;
}

static void add(struct fat_binary *binary, unsigned kind, unsigned sm, uint64_t flags, size_t size)
{
    const struct image_entry_header entry = {.kind = (uint16_t)kind,
                                             .sm = sm,
                                             .flags = flags,
                                             .header_size = sizeof(entry),
                                             .payload_size = size};
    uint64_t all;

    memcpy(binary->bytes + binary->size, &entry, sizeof(entry));
    memset(binary->bytes + binary->size + sizeof(entry), (int)sm, size);
    binary->size += sizeof(entry) + size;
    all = binary->size - sizeof(struct image_container);
    memcpy(binary->bytes + offsetof(struct image_container, size), &all, sizeof(all));
}

/* "e90 p90": the parts that are left; "all" when nothing was left out. */
static const char *trim(const struct fat_binary *binary, const unsigned *sms, unsigned count)
{
    static char text[128];
    struct image_entries entries;
    struct image_entry entry;
    void *bytes;
    size_t size, contents;

    if (!image_trim(binary->bytes, binary->size, sms, count, &bytes, &size))
        return "all";
    assert_true(image_container_size(bytes, &contents));
    assert_int_equal(contents, size);
    assert_int_equal(image_entries_open(&entries, bytes, size), 0);
    text[0] = '\0';
    while (image_entries_next(&entries, &entry) > 0) {
        assert_int_equal(*(const unsigned char *)entry.payload, entry.sm);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c%u", *text ? " " : "",
                 entry.kind == IMAGE_ELF   ? 'e'
                 : entry.kind == IMAGE_PTX ? 'p'
                                           : 'x',
                 entry.sm);
    }
    free(bytes);
    return text;
}

static const char *trim_for(const struct fat_binary *binary, unsigned sm)
{
    return trim(binary, &sm, 1);
}

static struct fat_binary library(void)
{
    struct fat_binary binary = empty();

    add(&binary, IMAGE_ELF, 75, 0, 8);
    add(&binary, IMAGE_ELF, 80, IMAGE_ZSTD, 16);
    add(&binary, IMAGE_ELF, 86, 0, 24);
    add(&binary, IMAGE_ELF, 90, 0, 32);
    add(&binary, IMAGE_ELF, 100, 0, 8);
    add(&binary, IMAGE_PTX, 70, 0, 8);
    add(&binary, IMAGE_PTX, 120, 0, 8);
    return binary;
}

static void the_newest_that_runs_stays(void **state)
{
    const unsigned both[] = {80, 90};
    struct fat_binary binary = library();

    (void)state;
    assert_string_equal(trim_for(&binary, 90), "e90 p70");
    assert_string_equal(trim_for(&binary, 89), "e86 p70");
    assert_string_equal(trim_for(&binary, 80), "e80 p70");
    assert_string_equal(trim_for(&binary, 121), "p120");
    assert_string_equal(trim(&binary, both, 2), "e80 e90 p70");
}

static void variants_and_unknown_parts_stay(void **state)
{
    struct fat_binary binary = library();

    (void)state;
    add(&binary, IMAGE_ELF, 90, IMAGE_ARCH_SPECIFIC, 8);
    add(&binary, IMAGE_PTX, 80, IMAGE_ARCH_SPECIFIC, 8);
    add(&binary, IMAGE_LTO, 75, 0, 8);
    add(&binary, 77, 1, 0, 8);
    add(&binary, IMAGE_ELF, 0, 0, 8);
    assert_string_equal(trim_for(&binary, 90), "e90 p70 e90 x75 x1 e0");
    assert_string_equal(trim_for(&binary, 80), "e80 p80 x75 x1 e0");
}

/* Text for sm_100f runs on 10.0 and 10.3, and nowhere else. */
static void text_for_a_family(void **state)
{
    struct fat_binary binary = empty();

    (void)state;
    add(&binary, IMAGE_PTX, 80, 0, 8);
    add(&binary, IMAGE_PTX, 100, IMAGE_FAMILY_SPECIFIC, 8);
    assert_string_equal(trim_for(&binary, 90), "p80");
    assert_string_equal(trim_for(&binary, 103), "p100");
    assert_string_equal(trim_for(&binary, 120), "p80");
}

static void where_nothing_can_be_left_out(void **state)
{
    struct fat_binary binary = empty();

    (void)state;
    assert_string_equal(trim_for(&binary, 90), "all");
    add(&binary, IMAGE_ELF, 75, 0, 8);
    assert_string_equal(trim_for(&binary, 90), "all"); /* nothing would be left */
    assert_string_equal(trim_for(&binary, 75), "all");
    add(&binary, IMAGE_ELF, 90, 0, 12);
    add(&binary, IMAGE_ELF, 80, 0, 4);
    assert_string_equal(trim_for(&binary, 90), "all"); /* what follows is not aligned */
}

static void an_unsound_image_stays(void **state)
{
    struct fat_binary binary = library();
    void *bytes;
    const unsigned sm = 90;

    (void)state;
    for (size_t size = 0; size < binary.size; size++)
        assert_false(image_trim(binary.bytes, size, &sm, 1, &bytes, &size));
    binary.bytes[sizeof(struct image_container) + 8] = 0xff; /* an entry beyond the end */
    binary.bytes[sizeof(struct image_container) + 9] = 0xff;
    assert_string_equal(trim_for(&binary, 90), "all");
    assert_false(image_trim(".version 8.0", 12, &sm, 1, &bytes, &(size_t){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_that_runs_stays),
        cmocka_unit_test(variants_and_unknown_parts_stay),
        cmocka_unit_test(text_for_a_family),
        cmocka_unit_test(where_nothing_can_be_left_out),
        cmocka_unit_test(an_unsound_image_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
