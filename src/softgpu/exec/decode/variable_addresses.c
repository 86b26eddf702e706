/* SPDX-License-Identifier: Apache-2.0 */
/* See variable_addresses.h. */
#include "variable_addresses.h"

uint64_t variable_address(const struct variable_addresses *variables,
                          const struct ptx_symbol *symbol)
{
    if (!is_device_variable(symbol))
        return 0;
    uint32_t first = symbol->home ? variables->locals_of[symbol->home->index] : 0;
    return variables->addresses[variables->variable_of[first + symbol->index]];
}
