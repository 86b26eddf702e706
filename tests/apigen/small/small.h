/* SPDX-License-Identifier: Apache-2.0 */
/* A structure of every kind that a page can show. */
#define SMALL_WORDS 3u
#define SMALL_SIZE (SMALL_WORDS * 4u + sizeof(struct point)) /* bytes */

enum small_kind {
    SMALL_NONE,    /* nothing yet */
    SMALL_ONE = 4, /* one
                      of them */
    SMALL_TWO,     /* two */
};

struct point {
    int32_t x, y; /* where it is */
};

struct small {
    uint8_t kind; /* enum small_kind */
    /* A comment that stands alone is for readers of the header. */
    uint64_t address;            /* in bytes */
    uint32_t words[SMALL_WORDS]; /* the words */
    unsigned char pad1[4];
    struct point place;         /* where */
    _Alignas(64) uint32_t last; /* on a line of its own */
};
