/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes every generated decoder. The first byte of the input chooses one, the rest is the message,
 * in memory of exactly its size. What a decoder accepts is then read to its last byte. */
#include <stdlib.h>
#include <string.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t left)
{
    if (left == 0)
        return 0;
    size_t size = left - 1;
    void *message = malloc(size);
    if (size > 0)
        memcpy(message, input + 1, size);
    decoders[input[0] % DECODERS](message, size);
    free(message);
    return 0;
}
