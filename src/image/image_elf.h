/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code: unchecked ELF files of 64 bits. All values are read with memcpy, because an image
 * has no alignment. The functions hold no state and take no lock.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file with readable sections. The bytes belong to the caller, and must outlive it. */
struct image_elf {
    const unsigned char *bytes;
    size_t size;
    Elf64_Ehdr header;
    Elf64_Shdr names;
};

/* Whether bytes begin like an ELF file. PTX may be shorter, if it ends with a NUL. */
bool image_is_elf(const void *bytes);

/* Whether the headers and all sections lie within `size` bytes. */
bool image_elf_is_sound(const void *bytes, size_t size);

/* False when the tables of sections and of their names do not lie within the `size` bytes. */
bool image_elf_open(const void *bytes, size_t size, struct image_elf *ret_elf);

/* The name of section `index`, which is below header.e_shnum; NULL when it has none. */
const char *image_elf_section(const struct image_elf *elf, unsigned index, Elf64_Shdr *ret_section);

/* Whether a section's contents lie within the file. */
bool image_elf_holds(const struct image_elf *elf, const Elf64_Shdr *section);

/* The size in bytes of a file of unknown length. It ends with its last table, section or segment.
 * False when its headers are inconsistent, or it is larger than IMAGE_SIZE_MAX. */
bool image_elf_size(const void *file, size_t *ret_size);
