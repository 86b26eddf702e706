/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the PTX tree to a program. One PTX instruction becomes one insn or a few; each decode_
 * function takes an instruction and appends what runs it, or fails with a message.
 *
 * The instruction is builder->instruction, its opcode split into the tokens. A function that has
 * failed the builder (CUDA_ERROR_NOT_SUPPORTED or CUDA_ERROR_INVALID_PTX) may have appended
 * something; a builder that has failed before is left alone. The thread that builds calls them.
 */
#pragma once

#include "builder.h"
#include "tokens.h"
