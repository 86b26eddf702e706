/* SPDX-License-Identifier: Apache-2.0 */
/* Which images count as printing: plain, compressed and broken ones. */
#include <lz4.h>
#include <string.h>
#include <zstd.h>

#include "image_check.h"
#include "image_facts.h"
#include "image_format.h"
#include "unit.h"

static const char prints[] = ".version 8.0 .extern .func vprintf (.param .b64 a, .param .b64 b);";
static const char silent[] = ".version 8.0 .visible .entry nothing() { ret; } // no printing here";

struct image_request {
    unsigned char bytes[1024];
    size_t size;
};

static void put(struct image_request *image, size_t at, const void *value, size_t size)
{
    memcpy(image->bytes + at, value, size);
}

static struct image_request container(void)
{
    struct image_request image = {.size = 16};
    uint32_t magic = 0xba55ed50u;
    uint16_t version = 1, header_size = 16;

    put(&image, 0, &magic, 4);
    put(&image, 4, &version, 2);
    put(&image, 6, &header_size, 2);
    return image;
}

static void add(struct image_request *image, uint64_t flags, const void *payload, uint64_t size,
                uint64_t plain_size)
{
    size_t at = image->size;
    uint16_t kind = 1;
    uint32_t header_size = 64, compressed = flags ? (uint32_t)size : 0;
    uint64_t entries;

    put(image, at, &kind, 2);
    put(image, at + 4, &header_size, 4);
    put(image, at + 8, &size, 8);
    put(image, at + 16, &compressed, 4);
    put(image, at + 40, &flags, 8);
    put(image, at + 56, &plain_size, 8);
    put(image, at + 64, payload, size);
    image->size += 64 + size;
    entries = image->size - 16;
    put(image, 8, &entries, 8);
}

static struct image_facts facts_of(const void *bytes, size_t size)
{
    struct image_facts facts;

    image_facts_read(bytes, size, 90, &facts);
    image_facts_fini(&facts);
    return facts;
}

static bool says_it_prints(const struct image_request *image)
{
    assert_true(image_is_sound(image->bytes, image->size));
    return facts_of(image->bytes, image->size).prints;
}

static void test_text(void **state)
{
    assert_true(facts_of(prints, sizeof(prints) - 1).prints);
    assert_false(facts_of(silent, sizeof(silent) - 1).prints);
}

static void test_plain_entries(void **state)
{
    struct image_request image = container();

    assert_false(says_it_prints(&image));
    add(&image, 0, silent, sizeof(silent), 0);
    assert_false(says_it_prints(&image));
    add(&image, 0, prints, sizeof(prints), 0);
    assert_true(says_it_prints(&image));
}

static void test_behind_other_containers(void **state)
{
    struct image_request bundle = container(), quiet = container(), loud = container();

    add(&quiet, 0, silent, sizeof(silent) / 8 * 8, 0);
    add(&loud, 0, prints, sizeof(prints), 0);
    put(&bundle, bundle.size, quiet.bytes, quiet.size);
    bundle.size += quiet.size;
    assert_false(says_it_prints(&bundle));
    put(&bundle, bundle.size, loud.bytes, loud.size);
    bundle.size += loud.size;
    assert_true(says_it_prints(&bundle));
}

static void add_zstd(struct image_request *image, const char *text, size_t size)
{
    char packed[256];
    size_t packed_size = ZSTD_compress(packed, sizeof(packed), text, size, 19);

    assert_false(ZSTD_isError(packed_size));
    add(image, IMAGE_ZSTD, packed, packed_size, size);
}

static void add_lz4(struct image_request *image, const char *text, size_t size)
{
    char packed[256];
    int packed_size = LZ4_compress_default(text, packed, (int)size, sizeof(packed));

    assert_true(packed_size > 0);
    add(image, IMAGE_LZ4, packed, (uint64_t)packed_size, size);
}

static void test_compressed_entries(void **state)
{
    struct image_request quiet = container(), by_zstd = container(), by_lz4 = container();

    add_zstd(&quiet, silent, sizeof(silent));
    add_lz4(&quiet, silent, sizeof(silent));
    assert_false(says_it_prints(&quiet));
    add_zstd(&by_zstd, prints, sizeof(prints));
    assert_true(says_it_prints(&by_zstd));
    add_lz4(&by_lz4, prints, sizeof(prints));
    assert_true(says_it_prints(&by_lz4));
}

static void test_an_image_that_does_not_expand_counts_as_printing(void **state)
{
    struct image_request broken = container(), huge = container();

    add(&broken, IMAGE_ZSTD, silent, sizeof(silent), 100);
    assert_true(says_it_prints(&broken));
    add(&huge, IMAGE_LZ4, silent, sizeof(silent), UINT64_MAX);
    assert_true(says_it_prints(&huge));
}

static void test_all_calls_in_one_look(void **state)
{
    static const char allocates[] = ".extern .func (.param .b64 a) malloc (.param .b64 b);";
    struct image_request image = container();
    struct image_facts facts = facts_of(silent, sizeof(silent) - 1);

    assert_false(facts.prints || facts.allocates);
    add(&image, 0, prints, sizeof(prints), 0);
    facts = facts_of(image.bytes, image.size);
    assert_true(facts.prints && !facts.allocates);
    add(&image, 0, allocates, sizeof(allocates), 0);
    facts = facts_of(image.bytes, image.size);
    assert_true(facts.prints && facts.allocates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_plain_entries),
        cmocka_unit_test(test_behind_other_containers),
        cmocka_unit_test(test_compressed_entries),
        cmocka_unit_test(test_an_image_that_does_not_expand_counts_as_printing),
        cmocka_unit_test(test_all_calls_in_one_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
