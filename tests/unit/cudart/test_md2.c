/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD2 against the vectors of RFC 1319, and HMAC against its definition written out.
 */
#include "md2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_digest(const uint8_t digest[MD2_BLOCK], const char *expected)
{
    char text[2 * MD2_BLOCK + 1];

    for (int i = 0; i < MD2_BLOCK; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, expected);
}

static void check(const char *message, const char *expected)
{
    struct md2 md2;
    uint8_t digest[MD2_BLOCK];

    md2_init(&md2);
    md2_update(&md2, message, strlen(message));
    md2_finish(&md2, digest);
    assert_digest(digest, expected);
}

static void test_rfc_1319_vectors(void **state)
{
    check("", "8350e5a3e24c153df2275c9f80692773");
    check("a", "32ec01ec4a6dac72c0ab96fb34c0b5d1");
    check("abc", "da853b0d3f88d99b30283a69e6ded6bb");
    check("message digest", "ab4f496bfb2a530b219ff33031fe06b0");
    check("abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b");
    check("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
          "da33def2a42df13975352846c30338cd");
    check("12345678901234567890123456789012345678901234567890123456789012345678901234567890",
          "d5976f79d83d3a0dc9806c3c66f3efd8");
}

static void test_pieces_hash_as_the_whole(void **state)
{
    const char *message = "message digest";
    struct md2 md2;
    uint8_t digest[MD2_BLOCK];

    md2_init(&md2);
    for (size_t i = 0; i < strlen(message); i++)
        md2_update(&md2, message + i, 1);
    md2_finish(&md2, digest);
    assert_digest(digest, "ab4f496bfb2a530b219ff33031fe06b0");
}

static void hash_two(const uint8_t first[MD2_BLOCK], const void *second, size_t size,
                     uint8_t ret_digest[MD2_BLOCK])
{
    struct md2 md2;

    md2_init(&md2);
    md2_update(&md2, first, MD2_BLOCK);
    md2_update(&md2, second, size);
    md2_finish(&md2, ret_digest);
}

static void test_hmac_is_as_defined(void **state)
{
    const char *message = "what do ya want for nothing?";
    uint8_t key[MD2_BLOCK], inner_key[MD2_BLOCK], outer_key[MD2_BLOCK];
    uint8_t inner[MD2_BLOCK], expected[MD2_BLOCK], digest[MD2_BLOCK];
    struct hmac_md2 hmac;

    for (int i = 0; i < MD2_BLOCK; i++) {
        key[i] = (uint8_t)(i * 17);
        inner_key[i] = key[i] ^ 0x36;
        outer_key[i] = key[i] ^ 0x5c;
    }
    hash_two(inner_key, message, strlen(message), inner);
    hash_two(outer_key, inner, sizeof(inner), expected);

    hmac_md2_init(&hmac, key);
    hmac_md2_update(&hmac, message, 5);
    hmac_md2_update(&hmac, message + 5, strlen(message) - 5);
    hmac_md2_finish(&hmac, digest);
    assert_memory_equal(digest, expected, MD2_BLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_1319_vectors),
        cmocka_unit_test(test_pieces_hash_as_the_whole),
        cmocka_unit_test(test_hmac_is_as_defined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
