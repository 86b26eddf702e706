/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the opcode table's rows: conversions to integers.
 */
#define ALU_RARE
#include "alu_lanes.h"

#include "convert_integer.def"

ALU_FAMILY_BEGIN
#define ALU_ROWS "convert_integer.def"
#define ROW(name, suffix) ALU_HANDLERS(name, suffix)
#include "alu_each_row.h"
ALU_FAMILY_END(convert_integer);
