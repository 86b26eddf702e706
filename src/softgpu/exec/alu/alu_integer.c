/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the opcode table's rows: integers.
 */
#include "alu_lanes.h"

#include "integer.def"

ALU_FAMILY_BEGIN
#define ALU_ROWS "integer.def"
#define ROW(name, suffix) ALU_HANDLERS(name, suffix)
#include "alu_each_row.h"
ALU_FAMILY_END(integer);
