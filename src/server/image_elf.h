/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code as an ELF file that nobody has checked before. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_elf {
    const unsigned char *bytes;
    size_t size;
    Elf64_Ehdr header;
    Elf64_Shdr names;
};

/* False when the tables of sections and of their names do not lie within it. */
bool image_elf_open(const void *bytes, size_t size, struct image_elf *ret_elf);

/* The name of section `index`, which is below header.e_shnum; NULL when it has none. */
const char *image_elf_section(const struct image_elf *elf, unsigned index, Elf64_Shdr *ret_section);

/* Whether a section's contents lie within the file. */
bool image_elf_holds(const struct image_elf *elf, const Elf64_Shdr *section);

/* Whether a section of this name has no variables: code, what the driver must know of it, its
 * parameters and the compiler's own constants, debug information. */
bool image_elf_is_harmless(const char *name);
