/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opcodes of PTX that are refused. The tables are constant; any thread may call the functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct refused {
    const char *opcode;   /* an example */
    const char *operands; /* of registers %rN, %rdN, %fN, %hN, %pN and the shared variable box */
    const char *forms;    /* for the coverage document */
};
/* Of any version up to 9.0, whether it is run or not. */
bool is_opcode_of_ptx(const char *name, size_t length);
/* NULL behind the last. */
const struct refused *refused_at(unsigned index);
