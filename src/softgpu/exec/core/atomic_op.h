/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of atom, red, redux and of reductions in bulk. */
#pragma once

enum atomic_op {
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_INC,
    ATOMIC_DEC,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
    ATOMIC_OP_COUNT,
};
