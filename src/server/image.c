/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the headers of an image, or of each container of a bundle. All values are read with memcpy:
 * an image has no alignment.
 */
#include "image.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "image_bundle.h"
#include "image_containers.h"

struct entry_header {
    uint16_t kind;
    uint16_t unknown;
    uint32_t header_size;
    uint64_t payload_size;
};

/* The shortest header of an entry that any compiler has written. */
#define ENTRY_HEADER_MIN 64u

static bool within(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

static bool entries_are_sound(const unsigned char *bytes, uint64_t size)
{
    while (size) {
        struct entry_header entry;
        if (size < ENTRY_HEADER_MIN)
            return false;
        memcpy(&entry, bytes, sizeof(entry));
        if (entry.header_size < ENTRY_HEADER_MIN ||
            !within(entry.header_size, entry.payload_size, size))
            return false;
        bytes += entry.header_size + entry.payload_size;
        size -= entry.header_size + entry.payload_size;
    }
    return true;
}

static bool container_is_sound(const unsigned char *bytes, size_t size)
{
    struct image_container header;

    if (size < sizeof(header))
        return false;
    memcpy(&header, bytes, sizeof(header));
    return header.magic == IMAGE_CONTAINER_MAGIC && header.header_size >= sizeof(header) &&
           within(header.header_size, header.size, size) &&
           entries_are_sound(bytes + header.header_size, header.size);
}

/* The first one, and as many inputs as there may be. */
static bool containers_are_sound(const unsigned char *bytes, size_t size)
{
    for (unsigned i = 0; i <= IMAGE_INPUTS_MAX; i++) {
        if (!container_is_sound(bytes, size))
            return false;
        size_t extent = image_container_extent(bytes, size);
        if (extent == size)
            return true;
        bytes += extent;
        size -= extent;
    }
    return false;
}

static bool sections_are_sound(const unsigned char *bytes, size_t size, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + header->e_shoff + (uint64_t)i * sizeof(section), sizeof(section));
        if (section.sh_type != SHT_NOBITS && !within(section.sh_offset, section.sh_size, size))
            return false;
    }
    return true;
}

static bool elf_is_sound(const unsigned char *bytes, size_t size)
{
    Elf64_Ehdr header;

    if (size < sizeof(header))
        return false;
    memcpy(&header, bytes, sizeof(header));
    return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_shentsize == sizeof(Elf64_Shdr) &&
           within(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), size) &&
           within(header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize, size) &&
           (!header.e_shnum || header.e_shstrndx < header.e_shnum) &&
           sections_are_sound(bytes, size, &header);
}

/* PTX begins with a directive or a comment, perhaps behind white space. */
bool image_is_text(const void *image, size_t size)
{
    const unsigned char *bytes = image;
    size_t start = strspn((const char *)bytes, " \t\r\n");

    return start < size && (bytes[start] == '.' || bytes[start] == '/');
}

bool image_is_sound(const void *bytes, size_t size)
{
    uint32_t magic = 0;

    if (size < sizeof(magic))
        return false;
    memcpy(&magic, bytes, sizeof(magic));
    if (magic == IMAGE_CONTAINER_MAGIC)
        return containers_are_sound(bytes, size);
    if (!memcmp(bytes, ELFMAG, SELFMAG))
        return elf_is_sound(bytes, size);
    return image_is_text(bytes, size);
}
