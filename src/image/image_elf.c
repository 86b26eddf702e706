/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and walks the tables of ELF files. */
#include "image_elf.h"

#include <string.h>

#include "image_format.h"

bool image_is_elf(const void *bytes)
{
    return strncmp(bytes, ELFMAG, SELFMAG) == 0;
}

static bool range_is_within(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

/* Copies the header of a file whose table of sections lies within it. */
static bool read_header(const void *bytes, size_t size, Elf64_Ehdr *ret_header)
{
    if (size < sizeof(*ret_header))
        return false;
    memcpy(ret_header, bytes, sizeof(*ret_header));
    return image_is_elf(bytes) && ret_header->e_ident[EI_CLASS] == ELFCLASS64 &&
           ret_header->e_shentsize == sizeof(Elf64_Shdr) &&
           range_is_within(ret_header->e_shoff, (uint64_t)ret_header->e_shnum * sizeof(Elf64_Shdr),
                           size);
}

static Elf64_Shdr section_at(const void *bytes, const Elf64_Ehdr *header, unsigned index)
{
    Elf64_Shdr section;

    memcpy(&section, (const char *)bytes + header->e_shoff + (size_t)index * header->e_shentsize,
           sizeof(section));
    return section;
}

/* ---- is it sound ---- */

static bool sections_are_sound(const void *bytes, size_t size, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section = section_at(bytes, header, i);

        if (section.sh_type != SHT_NOBITS &&
            !range_is_within(section.sh_offset, section.sh_size, size))
            return false;
    }
    return true;
}

bool image_elf_is_sound(const void *bytes, size_t size)
{
    Elf64_Ehdr header;

    return read_header(bytes, size, &header) &&
           range_is_within(header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize, size) &&
           (!header.e_shnum || header.e_shstrndx < header.e_shnum) &&
           sections_are_sound(bytes, size, &header);
}

/* ---- its sections ---- */

bool image_elf_holds(const struct image_elf *elf, const Elf64_Shdr *section)
{
    return range_is_within(section->sh_offset, section->sh_size, elf->size);
}

bool image_elf_open(const void *bytes, size_t size, struct image_elf *ret_elf)
{
    struct image_elf elf = {.bytes = bytes, .size = size};

    if (!read_header(bytes, size, &elf.header) || elf.header.e_shstrndx >= elf.header.e_shnum)
        return false;
    elf.names = section_at(bytes, &elf.header, elf.header.e_shstrndx);
    *ret_elf = elf;
    return image_elf_holds(&elf, &elf.names);
}

const char *image_elf_section(const struct image_elf *elf, unsigned index, Elf64_Shdr *ret_section)
{
    const char *text = (const char *)elf->bytes + elf->names.sh_offset;

    *ret_section = section_at(elf->bytes, &elf->header, index);
    if (ret_section->sh_name >= elf->names.sh_size ||
        !memchr(text + ret_section->sh_name, '\0', elf->names.sh_size - ret_section->sh_name))
        return NULL;
    return text + ret_section->sh_name;
}

/* ---- its size ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t table_end(uint64_t offset, uint64_t count, uint64_t entry_size)
{
    return count ? offset + count * entry_size : 0;
}

static uint64_t sections_end(const void *file, const Elf64_Ehdr *header)
{
    uint64_t end = 0;

    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section = section_at(file, header, i);

        if (section.sh_type != SHT_NOBITS && section.sh_size <= IMAGE_SIZE_MAX)
            end = larger(end, section.sh_offset + section.sh_size);
    }
    return end;
}

static uint64_t segments_end(const void *file, const Elf64_Ehdr *header)
{
    uint64_t end = 0;

    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;

        memcpy(&segment, (const char *)file + header->e_phoff + (size_t)i * header->e_phentsize,
               sizeof(segment));
        if (segment.p_filesz <= IMAGE_SIZE_MAX)
            end = larger(end, segment.p_offset + segment.p_filesz);
    }
    return end;
}

static bool tables_make_sense(const Elf64_Ehdr *header)
{
    return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_shoff <= IMAGE_SIZE_MAX &&
           header->e_phoff <= IMAGE_SIZE_MAX &&
           (!header->e_shnum || header->e_shentsize >= sizeof(Elf64_Shdr)) &&
           (!header->e_phnum || header->e_phentsize >= sizeof(Elf64_Phdr));
}

bool image_elf_size(const void *file, size_t *ret_size)
{
    Elf64_Ehdr header;
    uint64_t end;

    memcpy(&header, file, sizeof(header));
    if (!tables_make_sense(&header))
        return false;
    end = larger(sizeof(header), table_end(header.e_shoff, header.e_shnum, header.e_shentsize));
    end = larger(end, table_end(header.e_phoff, header.e_phnum, header.e_phentsize));
    end = larger(end, sections_end(file, &header));
    end = larger(end, segments_end(file, &header));
    if (end > IMAGE_SIZE_MAX)
        return false;
    *ret_size = (size_t)end;
    return true;
}
