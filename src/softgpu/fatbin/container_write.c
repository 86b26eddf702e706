/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the software GPU's linker, in place of a cubin. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"

#define PAYLOAD_ALIGN 8u

int fatbin_write_container(const struct fatbin_part *part, unsigned sm, void **ret_bytes,
                           size_t *ret_size)
{
    /* The padding ends the text. */
    size_t payload = (part->size + PAYLOAD_ALIGN) / PAYLOAD_ALIGN * PAYLOAD_ALIGN;
    const struct image_entry_header entry = {.kind = IMAGE_PTX,
                                             .unknown_1 = 0x101,
                                             .header_size = sizeof(entry),
                                             .payload_size = payload,
                                             .sm = sm};
    const struct image_container container = {.magic = IMAGE_CONTAINER_MAGIC,
                                              .version = 1,
                                              .header_size = sizeof(container),
                                              .size = sizeof(entry) + payload};
    char *bytes = calloc(1, sizeof(container) + container.size);

    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, &container, sizeof(container));
    memcpy(bytes + sizeof(container), &entry, sizeof(entry));
    memcpy(bytes + sizeof(container) + sizeof(entry), part->text, part->size);
    *ret_bytes = bytes;
    *ret_size = sizeof(container) + container.size;
    return 0;
}
