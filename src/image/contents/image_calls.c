/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that print or allocate call a function of a known name. It stands in the symbol table of
 * machine code, and in PTX.
 */
#include <string.h>

#include "image_contents.h"

static bool mentions(const struct image_part *part, const char *name)
{
    return memmem(part->bytes, part->size, name, strlen(name));
}

bool image_part_prints(const struct image_part *part)
{
    return mentions(part, "vprintf");
}

bool image_part_allocates(const struct image_part *part)
{
    return mentions(part, "malloc");
}
