/* SPDX-License-Identifier: Apache-2.0 */
/* Reads each input twice: for its size, and to copy it. */
#include "image_inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image_container.h"

static bool read_wrapper(const void *code, struct image_wrapper *ret_wrapper)
{
    if (!image_is_wrapper(code))
        return false;
    memcpy(ret_wrapper, code, sizeof(*ret_wrapper));
    return ret_wrapper->version == 2 && ret_wrapper->inputs && ret_wrapper->inputs[0];
}

bool image_has_inputs(const void *code)
{
    struct image_wrapper wrapper;

    return read_wrapper(code, &wrapper);
}

static bool nothing_is_linked(const struct image_wrapper *wrapper)
{
    struct image_container linked;

    if (!wrapper->linked)
        return true;
    memcpy(&linked, wrapper->linked, sizeof(linked));
    return linked.magic == IMAGE_CONTAINER_MAGIC && linked.size == 0;
}

bool image_has_only_inputs(const void *code)
{
    struct image_wrapper wrapper;

    return read_wrapper(code, &wrapper) && nothing_is_linked(&wrapper);
}

static size_t padded(size_t size)
{
    return (size + IMAGE_BUNDLE_ALIGN - 1) / IMAGE_BUNDLE_ALIGN * IMAGE_BUNDLE_ALIGN;
}

/* The empty container at the start of a bundle, where nothing is linked. */
static const struct image_container nothing = {
    .magic = IMAGE_CONTAINER_MAGIC, .version = 1, .header_size = sizeof(nothing)};

/* A driver may refuse inputs together with another container than the one that was linked from
 * them. So the bundle has the linked container although the device does not run it. */
static const void *first_container(const struct image_wrapper *wrapper)
{
    size_t size;

    if (nothing_is_linked(wrapper) || !image_container_size(wrapper->linked, &size))
        return &nothing;
    return wrapper->linked;
}

/* The size of a bundle: the first container, and all inputs, with their padding. */
static int measure_containers(const void *first, const void *const *inputs, size_t *ret_size)
{
    size_t all = 0;

    if (!image_container_size(first, &all) || all > IMAGE_SIZE_MAX)
        return -EINVAL;
    all = padded(all);
    for (unsigned i = 0; inputs[i]; i++) {
        size_t size;

        if (i == IMAGE_INPUTS_MAX || !image_container_size(inputs[i], &size) ||
            size > IMAGE_SIZE_MAX - all)
            return -EINVAL;
        all += padded(size);
    }
    *ret_size = all;
    return 0;
}

static char *append_container(char *bytes, const void *container)
{
    size_t size;

    image_container_size(container, &size);
    memcpy(bytes, container, size);
    memset(bytes + size, 0, padded(size) - size);
    return bytes + padded(size);
}

static void gather_containers(const void *first, const void *const *inputs, char *bytes)
{
    bytes = append_container(bytes, first);
    for (; *inputs; inputs++)
        bytes = append_container(bytes, *inputs);
}

int image_gather_inputs(const void *code, void **ret_bytes, size_t *ret_size)
{
    struct image_wrapper wrapper;
    const void *first;
    size_t size;
    char *bytes;

    if (!read_wrapper(code, &wrapper))
        return -EINVAL;
    first = first_container(&wrapper);
    if (measure_containers(first, wrapper.inputs, &size))
        return -EINVAL;
    bytes = malloc(size);
    if (!bytes)
        return -ENOMEM;
    gather_containers(first, wrapper.inputs, bytes);
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}
