/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of PTX, found by the PTX parser of the software GPU. */
#include <string.h>

#include "image_names.h"
#include "ptx.h"

static bool is_of_module(const struct ptx_symbol *symbol)
{
    return symbol->variable.space == PTX_GLOBAL || symbol->variable.space == PTX_CONST;
}

/* The state of managed memory, textures and surfaces is not in their bytes. */
static bool is_plain(const struct ptx_variable *variable)
{
    return !variable->is_managed && !ptx_type_is_reference(variable->type);
}

/* The driver places a variable at a multiple of its alignment. */
static void add_bytes(const struct ptx_variable *variable, uint64_t *bytes)
{
    uint64_t size = (variable->size + variable->align - 1) / variable->align * variable->align;

    if (__builtin_add_overflow(*bytes, size, bytes))
        *bytes = IMAGE_BYTES_UNKNOWN;
}

static bool add_variable(struct image_names *names, const char *name,
                         const struct ptx_variable *variable)
{
    const struct image_name like = {.name = (char *)(uintptr_t)name,
                                    .size = variable->size,
                                    .constant = variable->space == PTX_CONST,
                                    .relocated = variable->relocations || variable->has_names};

    return image_names_add_like(names, &like, strlen(name));
}

/* False when not all names are known; the bytes count in any case. */
static bool read_symbols(struct ptx_symbol *const *symbols, uint32_t count,
                         struct image_names *names, uint64_t *bytes)
{
    bool complete = true;

    for (uint32_t i = 0; i < count; i++) {
        const struct ptx_variable *variable = &symbols[i]->variable;
        const char *name = symbols[i]->name;

        if (!is_of_module(symbols[i]))
            continue;
        add_bytes(variable, bytes);
        complete = complete && is_plain(variable) && add_variable(names, name, variable);
    }
    return complete;
}

/* In a container, zeros follow the PTX. */
static size_t ptx_size(const struct image_part *part)
{
    const char *ptx = part->bytes;
    size_t size = part->size;

    while (size && ptx[size - 1] == '\0')
        size--;
    return size;
}

static bool has_textures(const struct image_part *part)
{
    return memmem(part->bytes, part->size, ".tex", 4) ||
           memmem(part->bytes, part->size, ".surf", 5);
}

bool image_ptx_names(const struct image_part *part, struct image_names *names, uint64_t *ret_bytes)
{
    struct ptx_error error;
    struct ptx_module *module = ptx_parse_declarations(part->bytes, ptx_size(part), &error);
    bool complete;

    *ret_bytes = IMAGE_BYTES_UNKNOWN;
    if (!module)
        return false;
    *ret_bytes = 0;
    complete = read_symbols(module->variables, module->variable_count, names, ret_bytes);
    for (uint32_t i = 0; i < module->function_count; i++) {
        const struct ptx_function *function = module->functions[i];

        complete &= read_symbols(function->variables, function->variable_count, names, ret_bytes);
    }
    ptx_module_destroy(module);
    return complete && !has_textures(part);
}
