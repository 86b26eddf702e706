/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kernels of an image may print, or allocate. Those that do call a function of a known
 * name, which stands in the symbol table of machine code as in the text of PTX.
 */
#include <string.h>

#include "image_contents.h"
#include "image_parts.h"

static bool mentions(const struct image_part *part, const char *name)
{
    return memmem(part->bytes, part->size, name, strlen(name));
}

static bool mentions_print(void *unused, const struct image_part *part)
{
    (void)unused;
    return mentions(part, "vprintf");
}

bool image_prints(const void *bytes, size_t size)
{
    return image_any_part(bytes, size, &(struct image_visit){.test = mentions_print});
}

struct calls {
    bool prints, allocates;
};

/* True only when there is nothing left to be found. */
static bool note_calls(void *context, const struct image_part *part)
{
    struct calls *calls = context;

    calls->prints |= mentions(part, "vprintf");
    calls->allocates |= mentions(part, "malloc");
    return calls->prints && calls->allocates;
}

void image_calls(const void *bytes, size_t size, bool *ret_prints, bool *ret_allocates)
{
    struct calls calls = {0};
    bool all =
        image_any_part(bytes, size, &(struct image_visit){.test = note_calls, .context = &calls});

    *ret_prints = all || calls.prints;
    *ret_allocates = all || calls.allocates;
}
