/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program while it is built. The first error latches (decode_fail), and everything after it does
 * nothing.
 *
 * A builder and what it points to belong to the thread that builds. Offsets are bytes in the
 * register file. A failed allocation fails the builder with CUDA_ERROR_OUT_OF_MEMORY, and returns a
 * valid placeholder, which never runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_result.h"
#include "layout.h"
#include "program.h"
#include "variable_addresses.h"

/* Something whose code index is known only at the end. */
struct fixup {
    uint32_t insn;
    const struct ptx_symbol *label;      /* of the function decoded now */
    const struct ptx_function *function; /* or an entry point */
};

#define TEMPORARIES 8

struct builder {
    const struct variable_addresses *variables; /* NULL: only to check */
    const struct ptx_module *module;
    const struct ptx_function *kernel;
    const struct ptx_function *function;
    const struct ptx_instruction *instruction;
    struct program *program;
    uint32_t code_capacity;
    uint32_t constant_capacity;
    uint32_t *constant_slots; /* a hash table: index of a constant and one, or 0 */
    uint32_t slot_count;
    bool *checked;          /* by function: known to be fine; NULL when the code is wanted */
    struct layout *layouts; /* by function */
    uint32_t *shared; /* by module variable: offset in shared memory, NO_OPERAND when not used */
    const struct ptx_function **order; /* callees before their callers */
    uint32_t order_count;
    uint32_t *starts; /* by PTX instruction of the function: its code */
    struct fixup *fixups;
    uint32_t fixup_count;
    uint32_t fixup_capacity;
    uint32_t wide_temporary[TEMPORARIES];
    uint32_t narrow_temporary[TEMPORARIES];
    uint32_t predicate_temporary[TEMPORARIES];
    unsigned temporaries_used; /* of each kind, by the instruction decoded now */
    unsigned depth;
    uint32_t dynamic_align; /* of shared memory whose size the launch says */
    bool allocates;         /* some function calls alloca */
    bool failed;
    CUresult result;
    char *log;
    size_t log_size;
};

/* Keeps the first error: its result, and in the log the message behind line, function and opcode.
 * The log is cut where it is full. */
void decode_fail(struct builder *builder, CUresult result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The opcode is PTX, but not something that we run: CUDA_ERROR_NOT_SUPPORTED; or it is no opcode of
 * PTX at all: CUDA_ERROR_INVALID_PTX. */
void decode_unsupported(struct builder *builder);
/* CUDA_ERROR_INVALID_PTX. */
void decode_malformed(struct builder *builder, const char *what);
/* Appends an instruction of width 1 with the line of the PTX instruction, and zeros. The pointer is
 * good until the next one is emitted. */
struct insn *builder_emit(struct builder *builder, handler_fn run);
/* The last instruction gets the code index of the label, or of the function, at the end: one of the
 * two is NULL. Both stay the module's. */
void builder_add_fixup(struct builder *builder, const struct ptx_symbol *label,
                       const struct ptx_function *function);
/* A new row of the register file, 4 or 8 bytes a lane. CUDA_ERROR_INVALID_PTX: too many of them. */
uint32_t builder_allocate_lanes(struct builder *builder, unsigned bytes_per_lane);
/* Rows that one PTX instruction may use up to its end, at most TEMPORARIES of each kind. */
uint32_t builder_temporary(struct builder *builder, bool is_wide);
uint32_t builder_predicate_temporary(struct builder *builder);
