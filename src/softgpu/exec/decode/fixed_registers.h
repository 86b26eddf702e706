/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers that hold the same value all the time. Their function writes them in one place only,
 * with an unguarded mov. It moves a constant, an address known before the launch, or a special
 * register that never changes. Compilers write loops full of them. Such a register is the
 * constant's row of the register file itself, so the mov needs no code.
 *
 * A kernel's parameter that is loaded in one place only is such a value for as long as its grid
 * runs. The register's row is filled when a warp begins. So is what cvta makes of it, where global
 * and generic addresses are the same.
 */
#pragma once

#include <stdbool.h>

#include "builder.h"

/*
 * Finds them and changes their offsets in the function's layout; to be called before the
 * function, which must be builder->function, is decoded. Fails the builder if memory runs out.
 */
void fixed_registers_find(struct builder *builder);

/* Whether the instruction writes one of them, so that nothing is to be done. */
bool fixed_registers_has(struct builder *builder, const struct ptx_instruction *instruction);
