/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the fat binary reader: the input is a container, in memory of exactly its size. Whatever
 * comes out must be text that ends where it says. */
#include <stdlib.h>
#include <string.h>

#include "fatbin.h"
#include "fuzz.h"

static void check(const struct fatbin_code *code)
{
    for (unsigned i = 0; i < code->count; i++) {
        if (strlen(code->parts[i].text) != code->parts[i].size)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t left)
{
    struct fatbin_reason reason = {0};
    struct fatbin_code code;
    uint8_t *bytes = malloc(left);

    if (left > 0)
        memcpy(bytes, input, left);
    if (fatbin_read_container(bytes, left, 90, &code, &reason) == 0) {
        check(&code);
        fatbin_code_fini(&code);
    }
    free(bytes);
    return 0;
}
