/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes every generated decoder. The first byte of the input chooses one, and the rest is the
 * message. It stands in memory of exactly its size, or, without a sanitizer, at the end of a page
 * behind which there is none. What a decoder accepts is then read to its last byte. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz.h"
#include "wire_calls.h"

static void touch(const void *bytes, size_t size)
{
    static volatile unsigned char sum;
    for (size_t i = 0; i < size; i++)
        sum = (unsigned char)(sum + ((const unsigned char *)bytes)[i]);
}

/* Made by list_decoders.py: try_X() for each decoder, and `decoders`, a table of them. */
#include "decoders.h"

#define DECODERS (sizeof(decoders) / sizeof(decoders[0]))

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define HAS_SANITIZER true
#else
#define HAS_SANITIZER false
#endif

#define PLACE (1u << 16)
#define GUARD (1u << 16)

/* The end of memory that can be read: a system call in each turn would be most of the time. */
static unsigned char *end_of_place(void)
{
    static unsigned char *end;
    if (!end) {
        unsigned char *place =
            mmap(NULL, PLACE + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED || mprotect(place + PLACE, GUARD, PROT_NONE))
            abort();
        end = place + PLACE;
    }
    return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t left)
{
    if (left == 0)
        return 0;
    size_t size = left - 1;
    bool fits = !HAS_SANITIZER && size <= PLACE;
    void *message = fits ? end_of_place() - size : malloc(size);
    if (size > 0)
        memcpy(message, input + 1, size);
    decoders[input[0] % DECODERS](message, size);
    if (!fits)
        free(message);
    return 0;
}
