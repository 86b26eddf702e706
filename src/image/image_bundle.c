/* SPDX-License-Identifier: Apache-2.0 */
/* Walks containers that are known to be sound. */
#include "image_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "image_container.h"

size_t image_container_extent(const void *container, size_t size)
{
    struct image_container header;

    memcpy(&header, container, sizeof(header));
    size_t extent = header.header_size + (size_t)header.size;
    size_t padding = -extent % IMAGE_BUNDLE_ALIGN;
    return padding < size - extent ? extent + padding : size;
}

bool image_is_bundle(const void *image, size_t size)
{
    return image_is_container(image) && image_container_extent(image, size) < size;
}

static size_t count_containers(const char *bundle, size_t size)
{
    size_t count = 0;

    for (size_t at = 0; at < size; at += image_container_extent(bundle + at, size - at))
        count++;
    return count;
}

/* NULL ends the list of inputs. There is space for it, as the first container is not in the list.
 */
bool image_wrap(const void *bundle, size_t size, struct image_wrapper **ret_wrapper)
{
    const char *bytes = bundle;
    size_t count = count_containers(bytes, size), i = 0;
    struct image_wrapper *wrapper = calloc(1, sizeof(*wrapper) + count * sizeof(void *));

    if (!wrapper)
        return false;
    const void **inputs = (const void **)(wrapper + 1);
    *wrapper = (struct image_wrapper){
        .magic = IMAGE_WRAPPER_MAGIC, .version = 2, .linked = bundle, .inputs = inputs};
    for (size_t at = image_container_extent(bytes, size); at < size;
         at += image_container_extent(bytes + at, size - at))
        inputs[i++] = bytes + at;
    *ret_wrapper = wrapper;
    return true;
}
