/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD2 (RFC 1319) and HMAC (RFC 2104) over it. Long broken as cryptography; here it is only the
 * checksum in which libcudart expects an answer. A struct is one thread's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MD2_BLOCK 16

struct md2 {
    uint8_t state[MD2_BLOCK];
    uint8_t checksum[MD2_BLOCK];
    uint8_t block[MD2_BLOCK];
    size_t used;
};

void md2_init(struct md2 *md2);
void md2_update(struct md2 *md2, const void *data, size_t size);
void md2_finish(struct md2 *md2, uint8_t ret_digest[MD2_BLOCK]);

/* The key is exactly one block, so it needs neither padding nor hashing. */
struct hmac_md2 {
    struct md2 inner;
    uint8_t key[MD2_BLOCK];
};

void hmac_md2_init(struct hmac_md2 *hmac, const uint8_t key[MD2_BLOCK]);
void hmac_md2_update(struct hmac_md2 *hmac, const void *data, size_t size);
void hmac_md2_finish(struct hmac_md2 *hmac, uint8_t ret_digest[MD2_BLOCK]);
