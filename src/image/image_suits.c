/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the entry headers of a container, or the header of machine code. */
#include "image_suits.h"

#include <elf.h>
#include <string.h>

#include "image_container.h"

/* How the operating system is named in machine code of nvcc up to 12, and since 13. */
#define OSABI_CUDA 0x33
#define OSABI_CUDA_13 0x41

static bool machine_code_suits(unsigned code_sm, unsigned sm)
{
    return !code_sm || (code_sm / 10 == sm / 10 && code_sm <= sm);
}

/* 75, 90, ...; 0 = unknown. */
static unsigned sm_of_elf(const void *bytes, size_t size)
{
    Elf64_Ehdr header;

    if (size < sizeof(header) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return 0;
    memcpy(&header, bytes, sizeof(header));
    switch (header.e_ident[EI_OSABI]) {
    case OSABI_CUDA:
        return header.e_flags & 0xff;
    case OSABI_CUDA_13:
        return header.e_flags >> 8 & 0xff;
    default:
        return 0;
    }
}

static bool entry_suits(const struct image_entry *entry, unsigned sm)
{
    if (!entry->sm)
        return true;
    if (entry->kind == IMAGE_PTX)
        return entry->sm <= sm;
    return entry->kind != IMAGE_ELF || machine_code_suits(entry->sm, sm);
}

bool image_suits(const void *image, size_t size, unsigned sm)
{
    struct image_entries entries;
    struct image_entry entry;
    bool is_empty = true;

    if (!image_is_container(image) || image_entries_open(&entries, image, size) < 0)
        return machine_code_suits(sm_of_elf(image, size), sm);
    while (image_entries_next(&entries, &entry) > 0) {
        if (entry_suits(&entry, sm))
            return true;
        is_empty = false;
    }
    return is_empty;
}
