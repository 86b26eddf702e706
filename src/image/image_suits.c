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

static bool is_machine_code(const void *bytes, size_t size, unsigned sm)
{
    unsigned code_sm = sm_of_elf(bytes, size);

    return code_sm && machine_code_suits(code_sm, sm);
}

/* Of several entries the newest that suits: it was made for the device, or for one close to it. */
bool image_find_machine_code(const void *image, size_t size, unsigned sm, const void **ret_code,
                             size_t *ret_size)
{
    struct image_entries entries;
    struct image_entry entry;
    unsigned best = 0;

    *ret_code = image;
    *ret_size = size;
    if (!image_is_container(image) || image_entries_open(&entries, image, size) < 0)
        return is_machine_code(image, size, sm);
    while (image_entries_next(&entries, &entry) > 0) {
        if (entry.kind != IMAGE_ELF || image_entry_is_compressed(&entry) || entry.sm < best ||
            !is_machine_code(entry.payload, entry.payload_size, sm))
            continue;
        best = entry.sm;
        *ret_code = entry.payload;
        *ret_size = entry.payload_size;
    }
    return best != 0;
}
