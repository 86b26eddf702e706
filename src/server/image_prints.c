/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kernels of an image may print. Those that do call a function of a known name, which
 * stands in the symbol table of machine code as in the text of PTX.
 */
#include <string.h>

#include "image.h"
#include "image_parts.h"

static bool mentions_print(void *unused, const struct image_part *part)
{
    (void)unused;
    return memmem(part->bytes, part->size, "vprintf", strlen("vprintf"));
}

bool image_prints(const void *bytes, size_t size)
{
    return image_any_part(bytes, size, &(struct image_visit){.test = mentions_print});
}
