/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling of a whole warp that is compiled for the CPU at hand.
 */
#include "isa.h"
#include "tex_lanes.h"

tex_sample_lanes_fn tex_sample_lanes(void)
{
    static const tex_sample_lanes_fn functions[] = ISA_TABLE(tex_sample_lanes);
    return functions[isa_best()];
}
