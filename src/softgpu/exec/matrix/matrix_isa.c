/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers of multiplications that are compiled for the CPU at hand.
 */
#include "fragment.h"
#include "isa.h"

const struct tile_handlers *tile_handlers(void)
{
    static const struct tile_handlers *const tables[] = ISA_TABLE(&tile_handlers);
    return tables[isa_best()];
}
