/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the opcode table's rows: half precision.
 */
#define ALU_RARE
#include "alu_lanes.h"

#include "half.def"

ALU_FAMILY_BEGIN
#define ALU_ROWS "half.def"
#define ROW(name, suffix) ALU_HANDLERS(name, suffix)
#include "alu_each_row.h"
ALU_FAMILY_END(half);
