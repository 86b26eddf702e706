/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an image, whatever its form, to PTX text. The pointers inside a wrapper and the extent of
 * what they point at can only be believed: they are the calling program's own.
 */
#include "fatbin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_elf.h"
#include "image_expand.h"
#include "image_size.h"

__attribute__((format(printf, 3, 4))) static int refuse_image(struct fatbin_reason *reason,
                                                              int error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason->text, sizeof(reason->text), format, arguments);
    va_end(arguments);
    return error;
}

void fatbin_code_fini(struct fatbin_code *code)
{
    for (unsigned i = 0; i < code->count; i++)
        free(code->parts[i].text);
    free(code->parts);
    *code = (struct fatbin_code){0};
}

/* Takes the part over, also when it fails. */
static int code_add(struct fatbin_code *code, struct fatbin_part part)
{
    struct fatbin_part *parts = NULL;

    if (code->count < FATBIN_PARTS_LIMIT)
        parts = reallocarray(code->parts, code->count + 1, sizeof(*parts));
    if (!parts) {
        free(part.text);
        return -ENOMEM;
    }
    parts[code->count++] = part;
    code->parts = parts;
    return 0;
}

int fatbin_code_join(struct fatbin_code *code, struct fatbin_code *more)
{
    unsigned count = code->count + more->count;
    struct fatbin_part *parts = NULL;

    if (count <= FATBIN_PARTS_LIMIT)
        parts = reallocarray(code->parts, count, sizeof(*parts));
    if (!parts) {
        fatbin_code_fini(more);
        return -ENOMEM;
    }
    memcpy(parts + code->count, more->parts, more->count * sizeof(*parts));
    *code = (struct fatbin_code){.parts = parts, .count = count};
    free(more->parts);
    *more = (struct fatbin_code){0};
    return 0;
}

int fatbin_expand(const struct image_entry *entry, struct fatbin_part *ret_part)
{
    struct fatbin_part part;
    int error = image_expand(entry, FATBIN_PTX_LIMIT, &part.text, &part.size);

    if (error)
        return error;
    part.size = strlen(part.text); /* without the NULs that pad it */
    *ret_part = part;
    return 0;
}

static int add_container(struct fatbin_code *code, const void *bytes, size_t size, unsigned sm,
                         struct fatbin_reason *reason)
{
    struct image_entry entry;
    struct fatbin_part part;
    int error = fatbin_select(bytes, size, sm, &entry, reason);

    if (error)
        return error;
    error = fatbin_expand(&entry, &part);
    if (error)
        return refuse_image(reason, error, "the PTX for sm_%u in the program's fat binary %s",
                            entry.sm,
                            error == -ENOMEM ? "does not fit into memory" : "does not decompress");
    error = code_add(code, part);
    return error ? refuse_image(reason, error, "out of memory") : 0;
}

int fatbin_read_container(const void *bytes, size_t size, unsigned sm, struct fatbin_code *ret_code,
                          struct fatbin_reason *reason)
{
    struct fatbin_code code = {0};
    int error = add_container(&code, bytes, size, sm, reason);

    if (error)
        fatbin_code_fini(&code);
    else
        *ret_code = code;
    return error;
}

int fatbin_read_text(const char *text, size_t size, struct fatbin_code *ret_code,
                     struct fatbin_reason *reason)
{
    struct image_entry entry = {.payload = text, .payload_size = size};
    struct fatbin_part part;
    struct fatbin_code code = {0};
    int error = fatbin_expand(&entry, &part);

    if (!error)
        error = code_add(&code, part);
    if (error)
        return refuse_image(reason, error, "PTX text of %zu bytes is too long", size);
    *ret_code = code;
    return 0;
}

/* The size of a container of the calling program, which only the container itself tells. */
static int own_size(const void *container, size_t *ret_size, struct fatbin_reason *reason)
{
    if (!image_container_size(container, ret_size))
        return refuse_image(reason, -EINVAL, "the program's fat binary is malformed");
    return 0;
}

/* Inputs without PTX are tolerated as long as one has some: the compiler adds empty ones of its
 * own. */
static int read_relocatable(const void *const *containers, unsigned sm,
                            struct fatbin_code *ret_code, struct fatbin_reason *reason)
{
    struct fatbin_code code = {0};

    for (; *containers; containers++) {
        size_t size;
        int error = own_size(*containers, &size, reason);

        if (!error)
            error = add_container(&code, *containers, size, sm, reason);
        if (error && error != -ENOEXEC) {
            fatbin_code_fini(&code);
            return error;
        }
    }
    if (code.count == 0)
        return reason->text[0] ? -ENOEXEC
                               : refuse_image(reason, -ENOEXEC, "the fat binary is empty");
    *ret_code = code;
    return 0;
}

static int read_linked(const void *container, unsigned sm, struct fatbin_code *ret_code,
                       struct fatbin_reason *reason)
{
    size_t size;
    int error = own_size(container, &size, reason);

    return error ? error : fatbin_read_container(container, size, sm, ret_code, reason);
}

static int read_wrapper(const struct image_wrapper *wrapper, unsigned sm,
                        struct fatbin_code *ret_code, struct fatbin_reason *reason)
{
    if (wrapper->version != 1 && wrapper->version != 2)
        return refuse_image(reason, -EINVAL, "a fat binary of the unknown version %u",
                            wrapper->version);

    int error = wrapper->linked ? read_linked(wrapper->linked, sm, ret_code, reason) : -ENOEXEC;

    if (error != -ENOEXEC || wrapper->version == 1 || !wrapper->inputs)
        return error;
    reason->text[0] = '\0';
    return read_relocatable(wrapper->inputs, sm, ret_code, reason);
}

int fatbin_read(const void *image, unsigned sm, struct fatbin_code *ret_code,
                struct fatbin_reason *reason)
{
    const void *bytes;
    size_t size;

    if (image_is_wrapper(image))
        return read_wrapper(image, sm, ret_code, reason);
    if (image_is_elf(image))
        return refuse_image(reason, -ENOEXEC,
                            "the image is machine code (a cubin); the software GPU runs PTX only");
    if (!image_find(image, &bytes, &size))
        return refuse_image(reason, -EINVAL, "the image is neither a fat binary nor PTX");
    if (image_is_container(bytes))
        return fatbin_read_container(bytes, size, sm, ret_code, reason);
    return fatbin_read_text(bytes, size - 1, ret_code, reason);
}
