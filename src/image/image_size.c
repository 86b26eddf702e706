/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each format tells its length. A fat binary has it in its header, PTX ends at its NUL, and an ELF
 * file at the end of its tables and sections. An archive has members.
 */
#include "image_size.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image_container.h"
#include "image_elf.h"

#define ARCHIVE_MAGIC "!<arch>\n"
#define ARCHIVE_MEMBER 60

/* Members follow each other on even offsets. The first bytes that are no member header end the
 * archive. */
static bool archive_size(const char *archive, size_t *ret_size)
{
    size_t at = strlen(ARCHIVE_MAGIC);

    while (memcmp(archive + at + ARCHIVE_MEMBER - 2, "`\n", 2) == 0) {
        char digits[11] = {0};
        unsigned long long size;

        memcpy(digits, archive + at + 48, 10);
        size = strtoull(digits, NULL, 10);
        if (size > IMAGE_SIZE_MAX || at > IMAGE_SIZE_MAX)
            return false;
        at += ARCHIVE_MEMBER + (size_t)((size + 1) & ~1ull);
    }
    *ret_size = at;
    return true;
}

/* Other formats have a control byte among their first few. */
static bool looks_like_text(const unsigned char *code)
{
    for (int i = 0; i < 4; i++) {
        if (code[i] == 0)
            return i > 0;
        if (code[i] < 0x20 && code[i] != '\n' && code[i] != '\r' && code[i] != '\t')
            return false;
        if (code[i] >= 0x7f)
            return false;
    }
    return true;
}

static bool text_size(const char *text, size_t *ret_size)
{
    if (strncmp(text, ARCHIVE_MAGIC, strlen(ARCHIVE_MAGIC)) == 0)
        return archive_size(text, ret_size);
    *ret_size = strlen(text) + 1;
    return true;
}

static const void *linked_in(const void *code)
{
    struct image_wrapper wrapper;

    memcpy(&wrapper, code, sizeof(wrapper));
    return wrapper.linked;
}

bool image_find(const void *code, const void **ret_image, size_t *ret_size)
{
    if (looks_like_text(code)) {
        *ret_image = code;
        return text_size(code, ret_size);
    }
    if (image_is_wrapper(code))
        code = linked_in(code);
    if (!code)
        return false;
    *ret_image = code;
    return image_is_elf(code) ? image_elf_size(code, ret_size)
                              : image_container_size(code, ret_size);
}
