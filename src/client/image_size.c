/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long is a code image? Each format says so itself: a fat binary in its header, an ELF file by
 * the end of its tables and sections, an archive by its members, text by its NUL. Nothing is read
 * that an earlier field has not promised, and sizes that nobody's code has are refused.
 */
#include "image_size.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image_bundle.h"

#define OLD_CONTAINER_MAGIC 0x1ee55a01u
#define ARCHIVE_MAGIC "!<arch>\n"
#define ARCHIVE_MEMBER 60
#define LARGEST IMAGE_SIZE_MAX

static bool container_size(const void *image, size_t *ret_size)
{
    struct image_container header;

    memcpy(&header, image, sizeof(header));
    if (header.header_size < sizeof(header) || header.size > LARGEST)
        return false;
    *ret_size = header.header_size + (size_t)header.size;
    return true;
}

bool image_container_size(const void *image, size_t *ret_size)
{
    uint32_t magic;

    memcpy(&magic, image, sizeof(magic));
    return magic == IMAGE_CONTAINER_MAGIC && container_size(image, ret_size);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t table_end(uint64_t offset, uint64_t count, uint64_t entry_size)
{
    return count ? offset + count * entry_size : 0;
}

static uint64_t sections_end(const char *image, const Elf64_Ehdr *header)
{
    uint64_t end = 0;

    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;

        memcpy(&section, image + header->e_shoff + (size_t)i * header->e_shentsize,
               sizeof(section));
        if (section.sh_type != SHT_NOBITS && section.sh_size <= LARGEST)
            end = larger(end, section.sh_offset + section.sh_size);
    }
    return end;
}

static uint64_t segments_end(const char *image, const Elf64_Ehdr *header)
{
    uint64_t end = 0;

    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;

        memcpy(&segment, image + header->e_phoff + (size_t)i * header->e_phentsize,
               sizeof(segment));
        if (segment.p_filesz <= LARGEST)
            end = larger(end, segment.p_offset + segment.p_filesz);
    }
    return end;
}

static bool elf_size(const void *image, size_t *ret_size)
{
    Elf64_Ehdr header;
    uint64_t end;

    memcpy(&header, image, sizeof(header));
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shoff > LARGEST ||
        header.e_phoff > LARGEST)
        return false;
    if ((header.e_shnum && header.e_shentsize < sizeof(Elf64_Shdr)) ||
        (header.e_phnum && header.e_phentsize < sizeof(Elf64_Phdr)))
        return false;
    end = larger(sizeof(header), table_end(header.e_shoff, header.e_shnum, header.e_shentsize));
    end = larger(end, table_end(header.e_phoff, header.e_phnum, header.e_phentsize));
    end = larger(end, sections_end(image, &header));
    end = larger(end, segments_end(image, &header));
    if (end > LARGEST)
        return false;
    *ret_size = (size_t)end;
    return true;
}

/* Members follow each other on even offsets; what does not look like one is the end. */
static bool archive_size(const char *image, size_t *ret_size)
{
    size_t at = strlen(ARCHIVE_MAGIC);

    while (memcmp(image + at + ARCHIVE_MEMBER - 2, "`\n", 2) == 0) {
        char digits[11] = {0};
        unsigned long long size;

        memcpy(digits, image + at + 48, 10);
        size = strtoull(digits, NULL, 10);
        if (size > LARGEST || at > LARGEST)
            return false;
        at += ARCHIVE_MEMBER + (size_t)((size + 1) & ~1ull);
    }
    *ret_size = at;
    return true;
}

/* Text as a compiler may write it: anything else has a byte like this among its first few. */
static bool looks_like_text(const unsigned char *code)
{
    for (int i = 0; i < 4; i++) {
        if (code[i] == 0)
            return i > 0;
        if (code[i] < 0x20 && code[i] != '\n' && code[i] != '\r' && code[i] != '\t')
            return false;
        if (code[i] >= 0x7f)
            return false;
    }
    return true;
}

bool image_find(const void *code, const void **ret_image, size_t *ret_size)
{
    uint32_t magic = 0;

    if (looks_like_text(code)) {
        *ret_image = code;
        if (strncmp(code, ARCHIVE_MAGIC, strlen(ARCHIVE_MAGIC)) == 0)
            return archive_size(code, ret_size);
        *ret_size = strlen(code) + 1;
        return true;
    }
    memcpy(&magic, code, sizeof(magic));
    if (magic == IMAGE_WRAPPER_MAGIC) {
        struct image_wrapper wrapper;

        memcpy(&wrapper, code, sizeof(wrapper));
        if (!wrapper.linked)
            return false;
        code = wrapper.linked;
        memcpy(&magic, code, sizeof(magic));
    }
    *ret_image = code;
    if (magic == IMAGE_CONTAINER_MAGIC || magic == OLD_CONTAINER_MAGIC)
        return container_size(code, ret_size);
    if (memcmp(code, ELFMAG, SELFMAG) == 0)
        return elf_size(code, ret_size);
    return false;
}
