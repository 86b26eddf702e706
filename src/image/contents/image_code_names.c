/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of machine code: the objects in its symbol table. The sum of their sizes shows whether
 * every byte of a variable section has a name.
 */
#include <string.h>

#include "image_names.h"
#include "image_sections.h"
#include "image_symbols.h"

static const char *const variable_sections[] = {".nv.global", ".nv.global.init", ".nv.constant3"};

/* Addresses of variables for the code, and their relocations at the load. */
static const char *const extra_sections[] = {
    ".nv.constant4",      ".rel.nv.constant4",   ".rela.nv.constant4",   ".rel.nv.constant3",
    ".rela.nv.constant3", ".rel.nv.global.init", ".rela.nv.global.init",
};

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof(*(list)))

/* As many as one section of each kind, and some. */
#define VARIABLE_SECTIONS_MAX 8u

static bool holds_variables(const struct image_elf *elf, unsigned index)
{
    Elf64_Shdr section;
    const char *name = image_elf_section(elf, index, &section);

    return name && IS_ONE_OF(name, variable_sections);
}

static uint64_t round_up(uint64_t size, uint64_t alignment)
{
    return alignment > 1 && alignment <= 4096 ? (size + alignment - 1) / alignment * alignment
                                              : size;
}

static bool is_variable(const struct image_elf *elf, const Elf64_Sym *symbol)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF &&
           (symbol->st_shndx >= elf->header.e_shnum || holds_variables(elf, symbol->st_shndx));
}

static bool is_constant(const struct image_elf *elf, const Elf64_Sym *symbol)
{
    Elf64_Shdr section;
    const char *name = image_elf_section(elf, symbol->st_shndx, &section);

    return name && strcmp(name, ".nv.constant3") == 0;
}

/* Whether a relocation of this section writes into the symbol. Both kinds of entries begin with the
 * offset. */
static bool section_relocates(const struct image_elf *elf, const Elf64_Shdr *section,
                              const Elf64_Sym *symbol)
{
    uint64_t entry = section->sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel), offset;

    if (section->sh_info != symbol->st_shndx || !image_elf_holds(elf, section))
        return false;
    for (uint64_t at = 0; section->sh_size - at >= entry; at += entry) {
        memcpy(&offset, elf->bytes + section->sh_offset + at, sizeof(offset));
        if (offset - symbol->st_value < symbol->st_size)
            return true;
    }
    return false;
}

static bool is_relocated(const struct image_elf *elf, const Elf64_Sym *symbol)
{
    Elf64_Shdr section;

    for (unsigned i = 0; i < elf->header.e_shnum; i++) {
        image_elf_section(elf, i, &section);
        if ((section.sh_type == SHT_REL || section.sh_type == SHT_RELA) &&
            section_relocates(elf, &section, symbol))
            return true;
    }
    return false;
}

/* A flag beside the symbol means a special kind of variable, such as managed memory. */
static bool add_symbol(const struct image_elf *elf, const struct image_symbols *symbols,
                       const Elf64_Sym *symbol, struct image_names *names)
{
    const char *name = image_symbol_name(symbols, symbol);

    if (!name || !*name || symbol->st_shndx >= elf->header.e_shnum || symbol->st_other ||
        !symbol->st_size)
        return false;
    const struct image_name like = {.name = (char *)(uintptr_t)name,
                                    .size = symbol->st_size,
                                    .constant = is_constant(elf, symbol),
                                    .relocated = is_relocated(elf, symbol)};
    return image_names_add_like(names, &like, strlen(name));
}

/* ---- sections ---- */

static bool is_all_named(const struct image_elf *elf, const struct image_symbols *symbols,
                         unsigned index)
{
    Elf64_Shdr section;
    uint64_t named = 0;

    image_elf_section(elf, index, &section);
    for (uint64_t i = 0; i < symbols->count; i++) {
        Elf64_Sym symbol = image_symbol_at(symbols, i);

        if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx == index)
            named += round_up(symbol.st_size, section.sh_addralign);
    }
    return named >= section.sh_size;
}

static bool is_understood(const struct image_elf *elf, const struct image_symbols *symbols,
                          unsigned index)
{
    Elf64_Shdr section;
    const char *name = image_elf_section(elf, index, &section);

    if (!name)
        return false;
    if (IS_ONE_OF(name, variable_sections))
        return is_all_named(elf, symbols, index);
    return image_section_is_harmless(name) || IS_ONE_OF(name, extra_sections);
}

/* The bytes of variable sections, with or without names. */
static uint64_t bytes_of_sections(const struct image_elf *elf)
{
    uint64_t bytes = 0;
    Elf64_Shdr section;

    for (unsigned i = 0; i < elf->header.e_shnum; i++) {
        if (holds_variables(elf, i) && image_elf_section(elf, i, &section) &&
            __builtin_add_overflow(bytes, section.sh_size, &bytes))
            return IMAGE_BYTES_UNKNOWN;
    }
    return bytes;
}

bool image_code_names(const struct image_part *part, struct image_names *names, uint64_t *ret_bytes)
{
    struct image_elf elf;
    struct image_symbols symbols;

    *ret_bytes = IMAGE_BYTES_UNKNOWN;
    if (!image_elf_open(part->bytes, part->size, &elf))
        return false;
    *ret_bytes = bytes_of_sections(&elf);
    if (!image_symbols_open(&elf, &symbols))
        return false;
    for (unsigned i = 0, sections = 0; i < elf.header.e_shnum; i++) {
        sections += holds_variables(&elf, i);
        if (sections > VARIABLE_SECTIONS_MAX || !is_understood(&elf, &symbols, i))
            return false;
    }
    for (uint64_t i = 0; i < symbols.count; i++) {
        Elf64_Sym symbol = image_symbol_at(&symbols, i);

        if (is_variable(&elf, &symbol) && !add_symbol(&elf, &symbols, &symbol, names))
            return false;
    }
    return true;
}
