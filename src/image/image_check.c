/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the headers of an image, or of each container of a bundle. */
#include "image_check.h"

#include <string.h>

#include "image_bundle.h"
#include "image_container.h"
#include "image_elf.h"

static bool container_is_sound(const unsigned char *bytes, size_t size)
{
    struct image_entries entries;
    struct image_entry entry;
    int more = image_entries_open(&entries, bytes, size) == 0 ? 1 : -1;

    while (more > 0)
        more = image_entries_next(&entries, &entry);
    return more == 0;
}

/* A bundle has the linked container, perhaps empty, and at most IMAGE_INPUTS_MAX inputs. */
static bool containers_are_sound(const unsigned char *bytes, size_t size)
{
    for (unsigned i = 0; i <= IMAGE_INPUTS_MAX; i++) {
        if (!container_is_sound(bytes, size))
            return false;
        size_t extent = image_container_extent(bytes, size);
        if (extent == size)
            return true;
        bytes += extent;
        size -= extent;
    }
    return false;
}

/* PTX begins with a directive or a comment, perhaps behind white space. */
bool image_is_ptx(const void *image, size_t size)
{
    const unsigned char *bytes = image;
    size_t start = strspn((const char *)bytes, " \t\r\n");

    return start < size && (bytes[start] == '.' || bytes[start] == '/');
}

bool image_is_sound(const void *bytes, size_t size)
{
    if (size < sizeof(uint32_t))
        return false;
    if (image_is_container(bytes))
        return containers_are_sound(bytes, size);
    if (image_is_elf(bytes))
        return image_elf_is_sound(bytes, size);
    return image_is_ptx(bytes, size);
}
