/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD2 (RFC 1319) and HMAC (RFC 2104) over it. The digest is a 16-byte state that every block of
 * the message, and at the end a 16-byte checksum of the message, is stirred into.
 */
#include "md2.h"

#include <string.h>

/* A permutation of the byte values made from the digits of pi (RFC 1319, section 3.2). */
static const uint8_t pi[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,
    243, 192, 199, 115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212,
    224, 22,  103, 66,  111, 24,  138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160,
    251, 245, 142, 187, 47,  238, 122, 169, 104, 121, 145, 21,  178, 7,   63,  148, 194, 16,  137,
    11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,  53,  62,  204, 231, 191, 247, 151,
    3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,  170, 198, 79,  184,
    56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,  100,
    113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246,
    28,  70,  97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249,
    206, 186, 197, 234, 38,  44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129,
    77,  82,  106, 220, 55,  200, 108, 193, 171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120,
    136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254, 59,  0,   29,  57,  242, 239, 183, 14,
    102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,  80,  180, 143, 237, 31,
    26,  219, 153, 141, 51,  159, 17,  131, 20,
};

void md2_init(struct md2 *md2)
{
    memset(md2, 0, sizeof(*md2));
}

static void stir(uint8_t state[MD2_BLOCK], const uint8_t block[MD2_BLOCK])
{
    uint8_t x[3 * MD2_BLOCK];
    unsigned carry = 0;

    for (int i = 0; i < MD2_BLOCK; i++) {
        x[i] = state[i];
        x[MD2_BLOCK + i] = block[i];
        x[2 * MD2_BLOCK + i] = block[i] ^ state[i];
    }
    for (unsigned round = 0; round < 18; round++) {
        for (size_t i = 0; i < sizeof(x); i++)
            carry = x[i] ^= pi[carry];
        carry = (carry + round) & 0xff;
    }
    memcpy(state, x, MD2_BLOCK);
}

static void add_to_checksum(uint8_t checksum[MD2_BLOCK], const uint8_t block[MD2_BLOCK])
{
    uint8_t last = checksum[MD2_BLOCK - 1];

    for (int i = 0; i < MD2_BLOCK; i++)
        last = checksum[i] ^= pi[block[i] ^ last];
}

void md2_update(struct md2 *md2, const void *data, size_t size)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < size; i++) {
        md2->block[md2->used++] = bytes[i];
        if (md2->used < MD2_BLOCK)
            continue;
        add_to_checksum(md2->checksum, md2->block);
        stir(md2->state, md2->block);
        md2->used = 0;
    }
}

void md2_finish(struct md2 *md2, uint8_t ret_digest[MD2_BLOCK])
{
    uint8_t padding[MD2_BLOCK];
    size_t n = MD2_BLOCK - md2->used;

    memset(padding, (int)n, n);
    md2_update(md2, padding, n);
    stir(md2->state, md2->checksum);
    memcpy(ret_digest, md2->state, MD2_BLOCK);
}

static void update_with_pad(struct md2 *md2, const uint8_t key[MD2_BLOCK], uint8_t pad)
{
    uint8_t block[MD2_BLOCK];

    for (int i = 0; i < MD2_BLOCK; i++)
        block[i] = key[i] ^ pad;
    md2_update(md2, block, sizeof(block));
}

void hmac_md2_init(struct hmac_md2 *hmac, const uint8_t key[MD2_BLOCK])
{
    memcpy(hmac->key, key, MD2_BLOCK);
    md2_init(&hmac->inner);
    update_with_pad(&hmac->inner, key, 0x36);
}

void hmac_md2_update(struct hmac_md2 *hmac, const void *data, size_t size)
{
    md2_update(&hmac->inner, data, size);
}

void hmac_md2_finish(struct hmac_md2 *hmac, uint8_t ret_digest[MD2_BLOCK])
{
    struct md2 outer;
    uint8_t inner[MD2_BLOCK];

    md2_finish(&hmac->inner, inner);
    md2_init(&outer);
    update_with_pad(&outer, hmac->key, 0x5c);
    md2_update(&outer, inner, sizeof(inner));
    md2_finish(&outer, ret_digest);
}
