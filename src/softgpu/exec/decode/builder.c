/* SPDX-License-Identifier: Apache-2.0 */
/* See builder.h. */
#include "builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanes.h"
#include "opcodes.h"
#include "refused.h"
#include "tokens.h"

#define MAX_FILE (256u << 20)
#define MAX_CODE (1u << 26)

void decode_fail(struct builder *builder, CUresult result, const char *format, ...)
{
    if (builder->failed)
        return;
    builder->failed = true;
    builder->result = result;
    if (!builder->log_size)
        return;
    va_list args;
    va_start(args, format);
    int used = 0;
    bool is_called = builder->function != builder->kernel;
    if (builder->instruction)
        used = snprintf(builder->log, builder->log_size,
                        "PTX line %u, in %s%s%s: %.100s: ", builder->instruction->line,
                        builder->function->name, is_called ? " of kernel " : "",
                        is_called ? builder->kernel->name : "", builder->instruction->opcode);
    if (used >= 0 && (size_t)used < builder->log_size)
        vsnprintf(builder->log + used, builder->log_size - (size_t)used, format, args);
    va_end(args);
}

void decode_unsupported(struct builder *builder)
{
    struct tokens tokens;
    if (builder->instruction && tokens_split(builder->instruction->opcode, &tokens) &&
        !is_opcode_of_ptx(tokens.text[0], tokens.length[0])) {
        decode_malformed(builder, "this is not an instruction of PTX");
        return;
    }
    decode_fail(builder, CUDA_ERROR_NOT_SUPPORTED,
                "the software GPU does not run this instruction");
}

void decode_malformed(struct builder *builder, const char *what)
{
    decode_fail(builder, CUDA_ERROR_INVALID_PTX, "%s", what);
}

/* A placeholder for a failed allocation: the error has latched, so it never runs. */
static struct insn *nowhere(void)
{
    static __thread struct insn insn;
    return &insn;
}

struct insn *builder_emit(struct builder *builder, handler_fn run)
{
    struct program *program = builder->program;
    if (builder->failed)
        return nowhere();
    if (program->code_count == builder->code_capacity) {
        uint32_t capacity = builder->code_capacity ? 2 * builder->code_capacity : 256;
        struct insn *larger =
            capacity <= MAX_CODE ? aligned_alloc(64, capacity * sizeof(*larger)) : NULL;
        if (!larger) {
            decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
            return nowhere();
        }
        if (program->code_count)
            memcpy(larger, program->code, program->code_count * sizeof(*larger));
        free(program->code);
        program->code = larger;
        builder->code_capacity = capacity;
    }
    struct insn *insn = &program->code[program->code_count++];
    memset(insn, 0, sizeof(*insn));
    insn->run = run;
    insn->line = builder->instruction ? builder->instruction->line : 0;
    insn->width = 1;
    return insn;
}

void builder_add_fixup(struct builder *builder, const struct ptx_symbol *label,
                       const struct ptx_function *function)
{
    if (builder->failed)
        return;
    if (builder->fixup_count == builder->fixup_capacity) {
        uint32_t capacity = builder->fixup_capacity ? 2 * builder->fixup_capacity : 64;
        struct fixup *larger = realloc(builder->fixups, capacity * sizeof(*larger));
        if (!larger) {
            decode_fail(builder, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
            return;
        }
        builder->fixups = larger;
        builder->fixup_capacity = capacity;
    }
    builder->fixups[builder->fixup_count++] = (struct fixup){
        .insn = builder->program->code_count - 1, .label = label, .function = function};
}

uint32_t builder_allocate_lanes(struct builder *builder, unsigned bytes_per_lane)
{
    struct program *program = builder->program;
    uint32_t offset = program->file_size;
    program->file_size += bytes_per_lane * LANES;
    if (program->file_size > MAX_FILE)
        decode_fail(builder, CUDA_ERROR_INVALID_PTX, "too many registers");
    return offset;
}

uint32_t builder_temporary(struct builder *builder, bool is_wide)
{
    unsigned at = builder->temporaries_used++ % TEMPORARIES;
    return is_wide ? builder->wide_temporary[at] : builder->narrow_temporary[at];
}

uint32_t builder_predicate_temporary(struct builder *builder)
{
    return builder->predicate_temporary[builder->temporaries_used++ % TEMPORARIES];
}
