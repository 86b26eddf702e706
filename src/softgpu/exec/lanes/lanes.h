/* SPDX-License-Identifier: Apache-2.0 */
/* How many lanes a warp has, and the mask of all of them: bit l stands for lane l. */
#pragma once

#define LANES 32
#define FULL_MASK 0xffffffffu
