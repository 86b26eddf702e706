/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what the server reads in a module's image before it hands it to the driver. The input is
 * an image, in memory of exactly its size and a NUL. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "image_bundle.h"
#include "image_check.h"
#include "image_facts.h"

static void wrap(const uint8_t *bytes, size_t size)
{
    struct image_wrapper *wrapper;

    if (image_is_bundle(bytes, size) && image_wrap(bytes, size, &wrapper))
        free(wrapper);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t left)
{
    struct image_facts facts;
    uint8_t *bytes = calloc(left + 1, 1);

    if (left > 0)
        memcpy(bytes, input, left);
    if (image_is_sound(bytes, left)) {
        wrap(bytes, left);
        image_facts_read(bytes, left, 90, &facts);
        if (facts.has_names != (facts.names.count > 0) || (facts.has_names && !facts.has_variables))
            abort();
        image_facts_fini(&facts);
    }
    free(bytes);
    return 0;
}
