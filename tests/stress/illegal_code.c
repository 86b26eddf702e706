/* SPDX-License-Identifier: Apache-2.0 */
/* See illegal_code.h. */
#include "illegal_code.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_prototypes.h"

#define MACHINE_CUDA 190

/* A copy of the cubin; the link job is never destroyed. */
static unsigned char *compile(const char *ptx, size_t *ret_size)
{
    CUlinkState job;
    void *cubin;
    unsigned char *copy;

    if (cuLinkCreate_v2(0, NULL, NULL, &job) ||
        cuLinkAddData_v2(job, CU_JIT_INPUT_PTX, (void *)ptx, strlen(ptx) + 1, "illegal", 0, NULL,
                         NULL) ||
        cuLinkComplete(job, &cubin, ret_size))
        return NULL;
    copy = malloc(*ret_size);
    return copy ? memcpy(copy, cubin, *ret_size) : NULL;
}

static bool lies_in(size_t size, uint64_t offset, uint64_t length)
{
    return offset <= size && length <= size - offset;
}

/* The section headers, or NULL. */
static const Elf64_Shdr *sections_of(const unsigned char *file, size_t size, unsigned *ret_count)
{
    const Elf64_Ehdr *header = (const void *)file;

    if (size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
        header->e_machine != MACHINE_CUDA || header->e_shstrndx >= header->e_shnum ||
        !lies_in(size, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)))
        return NULL;
    *ret_count = header->e_shnum;
    return (const void *)(file + header->e_shoff);
}

static bool spoil_section(unsigned char *file, size_t size, const char *name)
{
    unsigned count = 0;
    const Elf64_Shdr *sections = sections_of(file, size, &count);
    const Elf64_Shdr *names = sections ? &sections[((Elf64_Ehdr *)file)->e_shstrndx] : NULL;

    for (unsigned i = 0; i < count; i++) {
        const Elf64_Shdr *section = &sections[i];
        uint64_t at = names->sh_offset + section->sh_name;

        if (!lies_in(size, at, strlen(name) + 1) || strcmp((char *)file + at, name) ||
            !lies_in(size, section->sh_offset, section->sh_size))
            continue;
        memset(file + section->sh_offset, 0xff, section->sh_size);
        return true;
    }
    return false;
}

const void *illegal_code(const char *ptx, const char *kernel)
{
    char name[80];
    size_t size = 0;
    unsigned char *cubin = compile(ptx, &size);

    snprintf(name, sizeof(name), ".text.%s", kernel);
    if (cubin && spoil_section(cubin, size, name))
        return cubin;
    free(cubin);
    return NULL;
}
