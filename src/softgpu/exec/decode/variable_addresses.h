/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a module's .global and .const variables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ptx.h"

/* The variables of a module's instance, which owns the arrays. */
struct variable_addresses {
    const uint32_t *variable_of; /* by the symbol's index: which variable, or UINT32_MAX; those of
                                    functions' bodies follow the module's */
    const uint32_t *locals_of;   /* by function: where those of its body begin in variable_of */
    const uint64_t *addresses;   /* by variable */
};

/* .global and .const variables have device memory, wherever they are declared. */
static inline bool is_device_variable(const struct ptx_symbol *symbol)
{
    return symbol->kind == PTX_VARIABLE &&
           (symbol->variable.space == PTX_GLOBAL || symbol->variable.space == PTX_CONST);
}

/* The device address of a variable; 0 for a symbol that is not one. */
uint64_t variable_address(const struct variable_addresses *variables,
                          const struct ptx_symbol *symbol);
