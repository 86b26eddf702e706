/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers of matrices that are compiled for the CPU at hand.
 */
#include "fragment.h"
#include "isa.h"
#include "wgmma.h"

const struct matrix_handlers *matrix_handlers(void)
{
    static const struct matrix_handlers *const tables[] = ISA_TABLE(&matrix_handlers);
    return tables[isa_best()];
}

const struct fragment_handlers *fragment_handlers(void)
{
    static const struct fragment_handlers *const tables[] = ISA_TABLE(&fragment_handlers);
    return tables[isa_best()];
}

const struct wgmma_handlers *wgmma_handlers(void)
{
    static const struct wgmma_handlers *const tables[] = ISA_TABLE(&wgmma_handlers);
    return tables[isa_best()];
}
