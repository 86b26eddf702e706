/* SPDX-License-Identifier: Apache-2.0 */
/* A word at a time: each is mixed in by a multiplication with an odd constant and a shift. */
#include "hash.h"

#include <string.h>

uint64_t hash_bytes(const void *bytes, size_t size)
{
    const unsigned char *next = bytes;
    uint64_t hash = size, word = 0;

    for (; size >= sizeof(word); size -= sizeof(word), next += sizeof(word)) {
        memcpy(&word, next, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    word = 0;
    if (size)
        memcpy(&word, next, size);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}
