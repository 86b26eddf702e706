/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the opcode table's rows: floating point of 32 and 64 bits.
 */
#include "alu_lanes.h"

#include "float.def"

ALU_FAMILY_BEGIN
#define ALU_ROWS "float.def"
#define ROW(name, suffix) ALU_HANDLERS(name, suffix)
#include "alu_each_row.h"
ALU_FAMILY_END(float);
