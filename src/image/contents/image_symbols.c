/* SPDX-License-Identifier: Apache-2.0 */
#include "image_symbols.h"

#include <string.h>

static bool open_section(const struct image_elf *elf, const Elf64_Shdr *section,
                         struct image_symbols *ret_symbols)
{
    Elf64_Shdr text;

    if (section->sh_link >= elf->header.e_shnum ||
        !image_elf_section(elf, section->sh_link, &text) || !image_elf_holds(elf, section) ||
        !image_elf_holds(elf, &text))
        return false;
    *ret_symbols = (struct image_symbols){.entries = elf->bytes + section->sh_offset,
                                          .count = section->sh_size / sizeof(Elf64_Sym),
                                          .text = (const char *)elf->bytes + text.sh_offset,
                                          .text_size = text.sh_size};
    return true;
}

bool image_symbols_open(const struct image_elf *elf, struct image_symbols *ret_symbols)
{
    Elf64_Shdr section;

    for (unsigned i = 0; i < elf->header.e_shnum; i++) {
        if (!image_elf_section(elf, i, &section))
            return false;
        if (section.sh_type == SHT_SYMTAB)
            return open_section(elf, &section, ret_symbols);
    }
    return false;
}

Elf64_Sym image_symbol_at(const struct image_symbols *symbols, uint64_t index)
{
    Elf64_Sym symbol;

    memcpy(&symbol, symbols->entries + index * sizeof(symbol), sizeof(symbol));
    return symbol;
}

const char *image_symbol_name(const struct image_symbols *symbols, const Elf64_Sym *symbol)
{
    if (symbol->st_name >= symbols->text_size)
        return NULL;
    const char *name = symbols->text + symbol->st_name;
    size_t left = symbols->text_size - symbol->st_name;
    return strnlen(name, left) < left ? name : NULL;
}
