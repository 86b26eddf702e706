/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol table of machine code. The functions hold no state and take no lock. */
#pragma once

#include "image_elf.h"

struct image_symbols {
    const unsigned char *entries;
    uint64_t count;
    const char *text;
    uint64_t text_size;
};

/* False when the file has no symbol table, or it does not lie within the file. */
bool image_symbols_open(const struct image_elf *elf, struct image_symbols *ret_symbols);

/* `index` is below the count. */
Elf64_Sym image_symbol_at(const struct image_symbols *symbols, uint64_t index);

/* The name, which ends with a NUL within the table: NULL when it does not. */
const char *image_symbol_name(const struct image_symbols *symbols, const Elf64_Sym *symbol);
