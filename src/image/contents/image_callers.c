/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In machine code a section has the call graph: pairs of indices into the symbol table, in lists.
 * Each list begins with a pair of 0 and the list's negative number.
 */
#include "image_callers.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "image_symbols.h"

/* Beside the visibility of a symbol: it is a kernel. */
#define IS_KERNEL 0x10

struct call {
    uint32_t caller, callee;
};

#define CALLS (UINT32_MAX - 0)            /* of functions by name */
#define CALLS_BY_POINTER (UINT32_MAX - 2) /* the second number is that of a type */
#define LAUNCHES (UINT32_MAX - 3)         /* of kernels */

unsigned image_uses_of(const char *name, size_t length)
{
    if (length == strlen("vprintf") && !memcmp(name, "vprintf", length))
        return IMAGE_USES_PRINTF;
    if (length == strlen("malloc") && !memcmp(name, "malloc", length))
        return IMAGE_USES_MALLOC;
    return memmem(name, length, "LaunchDevice", strlen("LaunchDevice")) ? IMAGE_USES_UNKNOWN : 0;
}

static bool find_calls(const struct image_elf *elf, Elf64_Shdr *ret_section)
{
    for (unsigned i = 0; i < elf->header.e_shnum; i++) {
        const char *name = image_elf_section(elf, i, ret_section);

        if (name && !strcmp(name, ".nv.callgraph"))
            return image_elf_holds(elf, ret_section);
    }
    return false;
}

/* The uses of the symbol itself. */
static unsigned own_uses(const struct image_symbols *symbols, uint64_t index)
{
    Elf64_Sym symbol = image_symbol_at(symbols, index);
    const char *name = image_symbol_name(symbols, &symbol);

    return name && symbol.st_shndx == SHN_UNDEF ? image_uses_of(name, strlen(name)) : 0;
}

static unsigned uses_by(uint32_t list, const struct call *call, const unsigned char *uses,
                        uint64_t count)
{
    if (list == CALLS_BY_POINTER)
        return IMAGE_USES_UNKNOWN;
    return (list == CALLS || list == LAUNCHES) && call->callee < count ? uses[call->callee] : 0;
}

/* Propagates the uses of each function to its callers. Returns whether one changed. */
static bool follow_once(const struct image_elf *elf, const Elf64_Shdr *section, unsigned char *uses,
                        uint64_t count)
{
    uint32_t list = CALLS;
    bool changed = false;

    for (uint64_t at = 0; at + sizeof(struct call) <= section->sh_size; at += sizeof(struct call)) {
        struct call call;

        memcpy(&call, elf->bytes + section->sh_offset + at, sizeof(call));
        if (!call.caller) {
            list = call.callee;
        } else if (call.caller < count) {
            unsigned found = uses_by(list, &call, uses, count);

            changed |= (found & ~uses[call.caller]) != 0;
            uses[call.caller] |= (unsigned char)found;
        }
    }
    return changed;
}

static bool add_kernels(const struct image_symbols *symbols, const unsigned char *uses,
                        struct image_names *callers)
{
    for (uint64_t i = 0; i < symbols->count; i++) {
        Elf64_Sym symbol = image_symbol_at(symbols, i);
        const char *name = image_symbol_name(symbols, &symbol);

        if (uses[i] && name && *name && (symbol.st_other & IS_KERNEL) &&
            ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
            !image_names_add(callers, name, strlen(name), uses[i], false))
            return false;
    }
    return true;
}

static bool code_callers(const struct image_part *part, struct image_names *callers)
{
    struct image_symbols symbols;
    struct image_elf elf;
    Elf64_Shdr section;

    if (!image_elf_open(part->bytes, part->size, &elf) || !image_symbols_open(&elf, &symbols) ||
        !find_calls(&elf, &section))
        return false;
    _cleanup_free_ unsigned char *uses = calloc(symbols.count + 1, 1);
    if (!uses)
        return false;
    for (uint64_t i = 0; i < symbols.count; i++)
        uses[i] = (unsigned char)own_uses(&symbols, i);
    while (follow_once(&elf, &section, uses, symbols.count))
        continue;
    return add_kernels(&symbols, uses, callers);
}

/* Whether the call graph has calls by pointer. */
static bool graph_has_pointers(const struct image_elf *elf, const Elf64_Shdr *section)
{
    uint32_t list = CALLS;

    for (uint64_t at = 0; at + sizeof(struct call) <= section->sh_size; at += sizeof(struct call)) {
        struct call call;

        memcpy(&call, elf->bytes + section->sh_offset + at, sizeof(call));
        if (!call.caller)
            list = call.callee;
        else if (list == CALLS_BY_POINTER || list == LAUNCHES)
            return true;
    }
    return false;
}

static bool is_device_function(const struct image_symbols *symbols, uint64_t index)
{
    Elf64_Sym symbol;

    if (index >= symbols->count)
        return true;
    symbol = image_symbol_at(symbols, index);
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && !(symbol.st_other & IS_KERNEL);
}

/* Whether a relocation of the section is that of a function's address. Both kinds of entries have
 * the number of the symbol behind the offset. */
static bool takes_functions(const struct image_elf *elf, const Elf64_Shdr *section,
                            const struct image_symbols *symbols)
{
    uint64_t entry = section->sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel), info;

    if (section->sh_type != SHT_RELA && section->sh_type != SHT_REL)
        return false;
    if (!image_elf_holds(elf, section))
        return true;
    for (uint64_t at = 0; section->sh_size - at >= entry; at += entry) {
        memcpy(&info, elf->bytes + section->sh_offset + at + sizeof(Elf64_Addr), sizeof(info));
        if (is_device_function(symbols, ELF64_R_SYM(info)))
            return true;
    }
    return false;
}

/* Compilers before CUDA 12.5 often write no call graph. */
static bool relocations_take_functions(const struct image_elf *elf)
{
    struct image_symbols symbols;
    Elf64_Shdr section;

    if (!image_symbols_open(elf, &symbols))
        return true;
    for (unsigned i = 0; i < elf->header.e_shnum; i++) {
        image_elf_section(elf, i, &section);
        if (takes_functions(elf, &section, &symbols))
            return true;
    }
    return false;
}

static bool code_calls_pointers(const struct image_part *part)
{
    struct image_elf elf;
    Elf64_Shdr section;

    if (!image_elf_open(part->bytes, part->size, &elf))
        return true;
    return find_calls(&elf, &section) ? graph_has_pointers(&elf, &section)
                                      : relocations_take_functions(&elf);
}

static bool ptx_calls_pointers(const struct image_part *part)
{
    return memmem(part->bytes, part->size, ".callprototype", 14) ||
           memmem(part->bytes, part->size, ".calltargets", 12) ||
           memmem(part->bytes, part->size, "LaunchDevice", 12);
}

bool image_part_calls_pointers(const struct image_part *part)
{
    return part->kind == IMAGE_ELF ? code_calls_pointers(part) : ptx_calls_pointers(part);
}

bool image_part_callers(const struct image_part *part, struct image_names *callers)
{
    return part->kind == IMAGE_ELF ? code_callers(part, callers) : image_ptx_callers(part, callers);
}
