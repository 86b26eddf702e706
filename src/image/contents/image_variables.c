/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a part has variables that outlive a kernel. Such a module has a state, and two clients
 * must not share it. Whatever is not known to be harmless counts as a variable.
 */
#include <ctype.h>
#include <string.h>

#include "image_contents.h"
#include "image_elf.h"
#include "image_sections.h"

static bool code_has_variables(const struct image_part *part)
{
    struct image_elf elf;

    if (!image_elf_open(part->bytes, part->size, &elf))
        return true;
    for (unsigned i = 0; i < elf.header.e_shnum; i++) {
        Elf64_Shdr section;
        const char *name = image_elf_section(&elf, i, &section);

        if (!name || !image_section_is_harmless(name))
            return true;
    }
    return false;
}

/* A space is named behind a blank where a variable is declared, and behind a name or a dot in an
 * instruction: "ld.global". */
static bool declares(const char *text, size_t size, const char *space)
{
    size_t length = strlen(space);
    const char *end = text + size, *found;

    while ((found = memmem(text, (size_t)(end - text), space, length))) {
        if (found == text || !isalnum((unsigned char)found[-1]))
            return true;
        text = found + length;
    }
    return false;
}

bool image_part_has_variables(const struct image_part *part)
{
    const char *bytes = part->bytes;
    size_t size = part->size;

    if (part->kind == IMAGE_ELF)
        return code_has_variables(part);
    return declares(bytes, size, ".global") || declares(bytes, size, ".const") ||
           declares(bytes, size, ".tex") || declares(bytes, size, ".surf");
}
