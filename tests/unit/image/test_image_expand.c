/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads of each kind, and claims that are lies. */
#include "unit.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "image_expand.h"

#define LIMIT 4096u

static const char text[] = "ninety ninety ninety ninety ninety ninety ninety ninety ninety";

struct packed {
    char bytes[256];
    struct image_entry entry;
};

static void pack(struct packed *packed, uint64_t flags)
{
    size_t size = sizeof(text);

    if (flags == IMAGE_ZSTD)
        size = ZSTD_compress(packed->bytes, sizeof(packed->bytes), text, sizeof(text), 3);
    else if (flags == IMAGE_LZ4)
        size = LZ4_compress_default(text, packed->bytes, sizeof(text), sizeof(packed->bytes));
    else
        memcpy(packed->bytes, text, sizeof(text));
    packed->entry = (struct image_entry){.flags = flags,
                                         .payload = packed->bytes,
                                         .payload_size = size,
                                         .compressed_size = size,
                                         .plain_size = sizeof(text)};
}

static void assert_expands(const struct image_entry *entry)
{
    char *bytes;
    size_t size;

    assert_int_equal(image_expand(entry, LIMIT, &bytes, &size), 0);
    assert_int_equal(size, sizeof(text));
    assert_memory_equal(bytes, text, size);
    assert_int_equal(bytes[size], '\0');
    free(bytes);
}

static void assert_refused(const struct image_entry *entry, size_t limit)
{
    char *bytes;
    size_t size;

    assert_int_equal(image_expand(entry, limit, &bytes, &size), -EINVAL);
}

static const uint64_t all[] = {0, IMAGE_ZSTD, IMAGE_LZ4};

static void every_kind_expands(void **state)
{
    struct packed packed;

    (void)state;
    for (int i = 0; i < 3; i++) {
        pack(&packed, all[i]);
        assert_expands(&packed.entry);
    }
}

static void the_limit_holds(void **state)
{
    struct packed packed;

    (void)state;
    for (int i = 0; i < 3; i++) {
        pack(&packed, all[i]);
        assert_refused(&packed.entry, sizeof(text) - 1);
    }
}

static void lz4_may_say_too_little(void **state)
{
    struct packed packed;

    (void)state;
    pack(&packed, IMAGE_LZ4);
    packed.entry.plain_size = 10;
    assert_expands(&packed.entry);
}

static void lies_are_refused(void **state)
{
    struct packed packed;

    (void)state;
    for (int i = 1; i < 3; i++) {
        pack(&packed, all[i]);
        packed.entry.compressed_size = packed.entry.payload_size + 1;
        assert_refused(&packed.entry, LIMIT);
        packed.entry.compressed_size = 0;
        assert_refused(&packed.entry, LIMIT);
        pack(&packed, all[i]);
        packed.entry.plain_size = 1ull << 40; /* must not become an allocation of this size */
        assert_refused(&packed.entry, LIMIT);
        pack(&packed, all[i]);
        memset(packed.bytes, 0xff, packed.entry.payload_size);
        assert_refused(&packed.entry, LIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_expands),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(lz4_may_say_too_little),
        cmocka_unit_test(lies_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
