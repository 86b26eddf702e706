/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an image has variables that outlive a kernel. Such a module has a state, and two clients
 * must not share it. Whatever is not known to be harmless counts as a variable.
 */
#include <ctype.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "image.h"
#include "image_parts.h"

/* Sections of machine code without variables: code, what the driver must know of it, its
 * parameters and the compiler's own constants, debug information. */
static const char *const harmless[] = {
    ".text.",        ".nv.info",      ".nv.shared.",    ".nv.constant0.", ".nv.constant2.",
    ".nv.callgraph", ".nv.prototype", ".rel.text.",     ".rela.text.",    ".rel.nv.constant0.",
    ".rel.debug_",   ".rela.debug_",  ".nv.rel.action", ".nv.compat",     ".symtab",
    ".strtab",       ".shstrtab",     ".debug_",        ".nv_debug_",     ".note.nv.",
};

static bool is_harmless(const char *name)
{
    for (unsigned i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (!strncmp(name, harmless[i], strlen(harmless[i])))
            return true;
    }
    return *name == '\0';
}

static bool within(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

static Elf64_Shdr section_at(const unsigned char *bytes, const Elf64_Ehdr *header, unsigned index)
{
    Elf64_Shdr section;

    memcpy(&section, bytes + header->e_shoff + (uint64_t)index * sizeof(section), sizeof(section));
    return section;
}

/* Expanded parts have not been checked before. */
static bool read_names(const unsigned char *bytes, size_t size, Elf64_Ehdr *ret_header,
                       Elf64_Shdr *ret_names)
{
    if (size < sizeof(*ret_header))
        return false;
    memcpy(ret_header, bytes, sizeof(*ret_header));
    if (memcmp(bytes, ELFMAG, SELFMAG) || ret_header->e_ident[EI_CLASS] != ELFCLASS64 ||
        ret_header->e_shentsize != sizeof(Elf64_Shdr) ||
        ret_header->e_shstrndx >= ret_header->e_shnum ||
        !within(ret_header->e_shoff, (uint64_t)ret_header->e_shnum * sizeof(Elf64_Shdr), size))
        return false;
    *ret_names = section_at(bytes, ret_header, ret_header->e_shstrndx);
    return within(ret_names->sh_offset, ret_names->sh_size, size);
}

static bool code_has_variables(const unsigned char *bytes, size_t size)
{
    Elf64_Ehdr header;
    Elf64_Shdr names;

    if (!read_names(bytes, size, &header, &names))
        return true;
    const char *text = (const char *)bytes + names.sh_offset;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section = section_at(bytes, &header, i);
        if (section.sh_name >= names.sh_size ||
            !memchr(text + section.sh_name, '\0', names.sh_size - section.sh_name) ||
            !is_harmless(text + section.sh_name))
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

static bool part_has_variables(enum image_part_kind kind, const void *bytes, size_t size)
{
    if (kind == IMAGE_ELF)
        return code_has_variables(bytes, size);
    return declares(bytes, size, ".global") || declares(bytes, size, ".const") ||
           declares(bytes, size, ".tex") || declares(bytes, size, ".surf");
}

bool image_has_variables(const void *bytes, size_t size)
{
    return image_any_part(bytes, size, part_has_variables);
}
