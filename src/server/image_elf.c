/* SPDX-License-Identifier: Apache-2.0 */
/* Walks sections. All values are read with memcpy: an image has no alignment. */
#include "image_elf.h"

#include <string.h>

static const char *const harmless[] = {
    ".text.",        ".nv.info",      ".nv.shared.",    ".nv.constant0.", ".nv.constant2.",
    ".nv.callgraph", ".nv.prototype", ".rel.text.",     ".rela.text.",    ".rel.nv.constant0.",
    ".rel.debug_",   ".rela.debug_",  ".nv.rel.action", ".nv.compat",     ".symtab",
    ".strtab",       ".shstrtab",     ".debug_",        ".nv_debug_",     ".note.nv.",
};

bool image_elf_is_harmless(const char *name)
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

static Elf64_Shdr section_at(const struct image_elf *elf, unsigned index)
{
    Elf64_Shdr section;

    memcpy(&section, elf->bytes + elf->header.e_shoff + (uint64_t)index * sizeof(section),
           sizeof(section));
    return section;
}

bool image_elf_holds(const struct image_elf *elf, const Elf64_Shdr *section)
{
    return within(section->sh_offset, section->sh_size, elf->size);
}

bool image_elf_open(const void *bytes, size_t size, struct image_elf *ret_elf)
{
    struct image_elf elf = {.bytes = bytes, .size = size};
    Elf64_Ehdr *header = &elf.header;

    if (size < sizeof(*header))
        return false;
    memcpy(header, bytes, sizeof(*header));
    if (memcmp(bytes, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shstrndx >= header->e_shnum ||
        !within(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), size))
        return false;
    elf.names = section_at(&elf, header->e_shstrndx);
    *ret_elf = elf;
    return image_elf_holds(&elf, &elf.names);
}

const char *image_elf_section(const struct image_elf *elf, unsigned index, Elf64_Shdr *ret_section)
{
    const char *text = (const char *)elf->bytes + elf->names.sh_offset;

    *ret_section = section_at(elf, index);
    if (ret_section->sh_name >= elf->names.sh_size ||
        !memchr(text + ret_section->sh_name, '\0', elf->names.sh_size - ret_section->sh_name))
        return NULL;
    return text + ret_section->sh_name;
}
