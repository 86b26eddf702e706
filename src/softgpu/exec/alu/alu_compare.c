/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the opcode table's rows: moving, selecting, comparing.
 */
#include "alu_lanes.h"

#include "compare.def"

ALU_FAMILY_BEGIN
#define ALU_ROWS "compare.def"
#define ROW(name, suffix) ALU_HANDLERS(name, suffix)
#include "alu_each_row.h"
ALU_FAMILY_END(compare);
