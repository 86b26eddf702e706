/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of a container's entries, in memory of exactly its size. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image_container.h"

#define ENTRY sizeof(struct image_entry_header)

struct sample {
    struct image_container header;
    struct image_entry_header first;
    char text[8];
    struct image_entry_header second;
    char code[16];
};

static struct sample make_sample(void)
{
    return (struct sample){
        .header = {IMAGE_CONTAINER_MAGIC, 1, sizeof(struct image_container),
                   sizeof(struct sample) - sizeof(struct image_container)},
        .first = {.kind = IMAGE_PTX,
                  .header_size = ENTRY,
                  .payload_size = 8,
                  .sm = 80,
                  .version_major = 7,
                  .version_minor = 4,
                  .flags = IMAGE_ZSTD,
                  .compressed_size = 5,
                  .plain_size = 99},
        .text = "PTX",
        .second = {.kind = IMAGE_ELF, .header_size = ENTRY, .payload_size = 16, .sm = 90},
    };
}

/* How many entries there are, or the error. */
static int walk(const void *bytes, size_t size)
{
    unsigned char *exact = malloc(size);
    struct image_entries entries;
    struct image_entry entry;
    int count = 0, more;

    memcpy(exact, bytes, size);
    more = image_entries_open(&entries, exact, size) == 0 ? 1 : -EINVAL;
    while (more > 0 && (more = image_entries_next(&entries, &entry)) > 0)
        count++;
    free(exact);
    return more < 0 ? more : count;
}

static void entries_are_read(void **state)
{
    const struct sample sample = make_sample();
    struct image_entries entries;
    struct image_entry entry;

    (void)state;
    assert_int_equal(image_entries_open(&entries, &sample, sizeof(sample)), 0);
    assert_int_equal(image_entries_next(&entries, &entry), 1);
    assert_int_equal(entry.kind, IMAGE_PTX);
    assert_int_equal(entry.sm, 80);
    assert_int_equal(entry.version_major, 7);
    assert_int_equal(entry.version_minor, 4);
    assert_ptr_equal(entry.payload, sample.text);
    assert_int_equal(entry.payload_size, 8);
    assert_int_equal(entry.compressed_size, 5);
    assert_int_equal(entry.plain_size, 99);
    assert_true(image_entry_is_compressed(&entry));
    assert_int_equal(image_entries_next(&entries, &entry), 1);
    assert_int_equal(entry.kind, IMAGE_ELF);
    assert_ptr_equal(entry.payload, sample.code);
    assert_false(image_entry_is_compressed(&entry));
    assert_int_equal(image_entries_next(&entries, &entry), 0);
    assert_int_equal(image_entries_next(&entries, &entry), 0);
}

static void a_container_cut_anywhere_is_refused(void **state)
{
    const struct sample sample = make_sample();

    (void)state;
    assert_int_equal(walk(&sample, sizeof(sample)), 2);
    for (size_t cut = 0; cut < sizeof(sample); cut++)
        assert_int_equal(walk(&sample, cut), -EINVAL);
}

static void sizes_that_lie_are_refused(void **state)
{
    static const uint64_t lies[] = {17, 1ull << 32, 1ull << 63, UINT64_MAX, UINT64_MAX - 63};

    (void)state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct sample sample = make_sample();

        sample.second.payload_size = lies[i];
        assert_int_equal(walk(&sample, sizeof(sample)), -EINVAL);
        sample = make_sample();
        sample.header.size = lies[i];
        assert_int_equal(walk(&sample, sizeof(sample)), -EINVAL);
        sample = make_sample();
        sample.first.header_size = (uint32_t)lies[i];
        assert_int_equal(walk(&sample, sizeof(sample)), -EINVAL);
    }
}

static void headers_that_are_too_short_are_refused(void **state)
{
    struct sample sample = make_sample();

    (void)state;
    sample.first.header_size = 0; /* would never end */
    assert_int_equal(walk(&sample, sizeof(sample)), -EINVAL);
    sample = make_sample();
    sample.header.header_size = sizeof(sample.header) - 1;
    assert_int_equal(walk(&sample, sizeof(sample)), -EINVAL);
}

static void the_beginnings_are_told_apart(void **state)
{
    const uint32_t container = IMAGE_CONTAINER_MAGIC, wrapper = IMAGE_WRAPPER_MAGIC;
    char *text = strdup("P");

    (void)state;
    assert_true(image_is_container(&container));
    assert_false(image_is_container(&wrapper));
    assert_true(image_is_wrapper(&wrapper));
    assert_false(image_is_wrapper(&container));
    assert_false(image_is_container(text)); /* and reads no byte behind its NUL */
    assert_false(image_is_wrapper(text));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_read),
        cmocka_unit_test(a_container_cut_anywhere_is_refused),
        cmocka_unit_test(sizes_that_lie_are_refused),
        cmocka_unit_test(headers_that_are_too_short_are_refused),
        cmocka_unit_test(the_beginnings_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
