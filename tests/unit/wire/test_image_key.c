/* SPDX-License-Identifier: Apache-2.0 */
/* What an image's key depends on. */
#include <string.h>

#include "image_key.h"
#include "unit.h"

static unsigned char image[IMAGE_KEY_MIN];

static int fill(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(image); i++)
        image[i] = (unsigned char)(i * 7 + i / 256);
    return 0;
}

static void the_same_bytes_have_the_same_key(void **state)
{
    static unsigned char copy[sizeof(image) + 1];

    (void)state;
    memcpy(copy + 1, image, sizeof(image));
    assert_int_equal(image_key(copy + 1, sizeof(image)), image_key(image, sizeof(image)));
}

static void size_edges_and_samples_count(void **state)
{
    static const size_t at[] = {0, 4095, 8192, sizeof(image) - 4096, sizeof(image) - 1};
    uint64_t key = image_key(image, sizeof(image));

    (void)state;
    assert_int_not_equal(image_key(image, sizeof(image) - 512), key);
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        image[at[i]] ^= 1;
        assert_int_not_equal(image_key(image, sizeof(image)), key);
        image[at[i]] ^= 1;
    }
    assert_int_equal(image_key(image, sizeof(image)), key);
}

static void short_ones_are_read_to_their_end(void **state)
{
    (void)state;
    assert_int_equal(image_key("", 0), image_key(image, 0));
    assert_int_not_equal(image_key(image, 7), image_key(image, 6));
    assert_int_not_equal(image_key(image, 16), image_key(image + 1, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_have_the_same_key),
        cmocka_unit_test(size_edges_and_samples_count),
        cmocka_unit_test(short_ones_are_read_to_their_end),
    };

    return cmocka_run_group_tests(tests, fill, NULL);
}
