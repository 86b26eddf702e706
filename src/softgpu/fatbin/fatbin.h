/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fat binaries, as nvcc puts them into programs; the software GPU uses their PTX.
 *
 * An image is a wrapper (registered by a program), a container of entries (PTX or machine code,
 * plain or compressed), or bare PTX. The most suitable PTX for the device is what fatbin_read()
 * finds. Bytes of other processes go through fatbin_read_container(), which never reads beyond the
 * given size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "image_container.h"

/* No program's PTX is nearly this large; a header that claims more is broken or hostile. */
#define FATBIN_PTX_LIMIT (256u << 20)

/* The relocatable parts of one program are linked together; more of them than this is refused. */
#define FATBIN_PARTS_LIMIT 4096u

struct fatbin_part {
    char *text; /* NUL terminated */
    size_t size;
};

/* The PTX of one image: one part, or several that have to be linked. */
struct fatbin_code {
    struct fatbin_part *parts;
    unsigned count;
};

/* Why an image was refused: a message for the log. */
struct fatbin_reason {
    char text[160];
};

/*
 * All three give code that fatbin_code_fini() frees: 0. -EINVAL: it is no image, or a broken one.
 * -ENOEXEC: it has nothing that this device can run. Or -ENOMEM. `sm` is the device's compute
 * capability as 90 for 9.0. `reason` is filled on error.
 */
int fatbin_read(const void *image, unsigned sm, struct fatbin_code *ret_code,
                struct fatbin_reason *reason);
int fatbin_read_container(const void *bytes, size_t size, unsigned sm, struct fatbin_code *ret_code,
                          struct fatbin_reason *reason);
int fatbin_read_text(const char *text, size_t size, struct fatbin_code *ret_code,
                     struct fatbin_reason *reason);
void fatbin_code_fini(struct fatbin_code *code);

/* Moves the parts of `more` to the end of `code`: 0, or -ENOMEM, and then `code` is as it was. Of
 * `more` nothing is left to free in either case. */
int fatbin_code_join(struct fatbin_code *code, struct fatbin_code *more);

/* The best PTX of a container for this device: 0, -ENOEXEC, -EINVAL. The entry points into the
 * container. */
int fatbin_select(const void *bytes, size_t size, unsigned sm, struct image_entry *ret_entry,
                  struct fatbin_reason *reason);

/* An entry's payload, expanded, as NUL-terminated text for the caller to free: 0, -EINVAL, -ENOMEM.
 */
int fatbin_expand(const struct image_entry *entry, struct fatbin_part *ret_part);
