/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a part has variables that outlive a kernel. Such a module has state, so two
 * clients must not share it. A section that is not known to be harmless counts as a variable.
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

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* An instruction begins with a letter, "ld.global", and a declaration with a dot, as in
 * ".visible.global". */
static bool is_of_opcode(const char *ptx, const char *space)
{
    const char *start = space;

    while (start > ptx && is_of_word(start[-1]))
        start--;
    return isalpha((unsigned char)*start);
}

static bool declares(const char *ptx, size_t size, const char *space)
{
    size_t length = strlen(space);
    const char *end = ptx + size, *found = ptx;

    while ((found = memmem(found, (size_t)(end - found), space, length))) {
        if (!is_of_opcode(ptx, found))
            return true;
        found += length;
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
