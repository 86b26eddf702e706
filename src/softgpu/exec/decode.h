/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the PTX tree to a program. One PTX instruction becomes one insn or a few; each decode_
 * function takes an instruction and appends what runs it, or fails with a sentence.
 *
 * The first error latches (decode_fail), and everything after it does nothing.
 */
#pragma once

#include "core.h"
#include "exec_control.h"
#include "exec_memory.h"
#include "opcodes.h"

#define MAX_TOKENS 24

/* An opcode taken apart at its dots. */
struct tokens {
    const char *text[MAX_TOKENS];
    size_t length[MAX_TOKENS];
    unsigned count;
};

/* Where a function's things are. */
struct layout {
    uint32_t *registers; /* offsets in the register file */
    uint32_t *variables; /* .local and .param: offsets in the frame; .shared: in shared memory */
    uint32_t
        *params; /* of a function: offsets in its frame; of an entry: in the parameter buffer */
    uint32_t *returns;
    uint32_t window; /* registers: first 64-bit ones, then 32-bit ones, then predicates */
    uint32_t wide_count;
    uint32_t narrow_count;
    uint32_t predicate_count;
    uint32_t save; /* offset in the frame */
    uint32_t mark; /* offset in the frame: how much room there was, see alloca.c */
    bool allocates;
    uint32_t frame;
    bool reached;
    bool on_path; /* being walked: meeting it again is recursion */
    bool done;
    uint32_t deepest; /* bytes of local memory with all it calls */
};

/* Something whose code index is known only at the end. */
struct fixup {
    uint32_t insn;
    const struct ptx_symbol *label;      /* of the function decoded now */
    const struct ptx_function *function; /* or an entry point */
};

#define TEMPORARIES 8

struct builder {
    struct sg_instance *instance; /* NULL: only to check */
    const struct ptx_module *module;
    const struct ptx_function *kernel;
    const struct ptx_function *function;
    const struct ptx_instruction *instruction;
    struct program *program;
    uint32_t code_capacity;
    uint32_t constant_capacity;
    uint32_t *constant_slots; /* a hash table: index of a constant and one, or 0 */
    uint32_t slot_count;
    bool *checked; /* by function: known to be fine; NULL when the code is wanted */
    uint32_t special_capacity;
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

/* ---- decode.c ---- */
void decode_fail(struct builder *builder, CUresult result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The opcode is PTX, but not something that we run. */
void decode_unsupported(struct builder *builder);
void decode_malformed(struct builder *builder, const char *what);
struct insn *emit(struct builder *builder, handler_fn run);
void add_fixup(struct builder *builder, const struct ptx_symbol *label,
               const struct ptx_function *function);
uint32_t allocate_lanes(struct builder *builder, unsigned bytes_per_lane);
uint32_t temporary(struct builder *builder, bool is_wide);
uint32_t predicate_temporary(struct builder *builder);

/* .global and .const variables have device memory, wherever they are declared. */
static inline bool is_device_variable(const struct ptx_symbol *symbol)
{
    return symbol->kind == PTX_VARIABLE &&
           (symbol->variable.space == PTX_GLOBAL || symbol->variable.space == PTX_CONST);
}

/* ---- layout.c ---- */
bool layout_program(struct builder *builder);
uint32_t layout_params(struct ptx_symbol *const *params, uint32_t count, uint32_t start,
                       uint32_t *ret_offsets);
uint32_t kernel_params_size(const struct ptx_function *kernel);
struct layout *layout_of(struct builder *builder, const struct ptx_function *function);

/* ---- tokens.c ---- */
bool tokens_split(const char *opcode, struct tokens *ret_tokens);
bool token_is(const struct tokens *tokens, unsigned index, const char *word);
bool token_starts(const struct tokens *tokens, unsigned index, const char *word);
/* The index of this word, or -1. */
int token_find(const struct tokens *tokens, const char *word);
/* 0 to 3, as insn.environment has it; -1: the word is no rounding. */
int token_rounding(const struct tokens *tokens, unsigned index);
enum ptx_type token_type(const struct tokens *tokens, unsigned index);
/* The type that ends the opcode. */
enum ptx_type last_type(const struct tokens *tokens);

/* ---- operand.c ---- */
unsigned operand_count(const struct builder *builder);
const struct ptx_operand *operand(struct builder *builder, unsigned index);
bool is_wide_type(enum ptx_type type);
enum ptx_type register_type(const struct builder *builder, const struct ptx_operand *operand);
bool is_register(const struct builder *builder, const struct ptx_operand *operand,
                 bool want_predicate);
uint32_t constant(struct builder *builder, uint64_t bits, bool is_wide);
/* Offset of a source of this type, whatever it is; may emit code that fetches it. */
uint32_t source(struct builder *builder, const struct ptx_operand *operand, enum ptx_type type);
/* A predicate source; *ret_negated is for !p. A constant predicate is possible. */
uint32_t source_predicate(struct builder *builder, const struct ptx_operand *operand,
                          bool *ret_negated);
uint32_t destination_predicate(struct builder *builder, const struct ptx_operand *operand);
/*
 * A destination for a value of this type. If the register is wider the value goes into a temporary,
 * and finish_destination emits what widens it.
 */
uint32_t destination(struct builder *builder, const struct ptx_operand *operand,
                     enum ptx_type type);
void finish_destination(struct builder *builder, const struct ptx_operand *operand,
                        enum ptx_type type, uint32_t offset);
/* Where a .param or .local variable is in its function's frame; false when it is an entry's
 * parameter. */
bool frame_offset(struct builder *builder, const struct ptx_symbol *symbol, uint32_t *ret_offset);
uint32_t param_offset(struct builder *builder, const struct ptx_symbol *symbol);

/* ---- decode_control.c ---- */
/* Comes back from the function, or ends the kernel's thread. */
void emit_return(struct builder *builder);

/* ---- decode_memory.c ---- */
/* What an access says besides its type. */
struct access {
    enum ptx_space space;
    enum ptx_type type;
    uint8_t width;
    bool synchronises; /* others may be waiting for it, or it for others */
    bool releases;
    bool has_hint; /* a last operand for the cache, which we do not have */
};

/* skip: how many words of the opcode are not modifiers. */
bool decode_access(struct builder *builder, const struct tokens *tokens, unsigned skip,
                   struct access *ret_access);
/* Whether the word is a state space. */
bool token_space(const struct tokens *tokens, unsigned index, enum ptx_space *ret_space);
/* Fills in a, imm, space and flags. */
void decode_address(struct builder *builder, const struct ptx_operand *from, enum ptx_space space,
                    struct insn *ret_insn);
/* The enum atomic_op in the opcode and which token it is, or -1. */
int decode_atomic_op(const struct tokens *tokens, unsigned *ret_at);

/* ---- decode_alu.c ---- */
/* What runs the insn, inside a floating-point environment if it is not the usual one. */
void set_handler(struct insn *insn, handler_fn run, unsigned environment);

/* ---- decode_*.c ---- */
typedef void (*decode_fn)(struct builder *builder, const struct tokens *tokens);
void decode_alu(struct builder *builder, const struct tokens *tokens);
void decode_limit(struct builder *builder, const struct tokens *tokens);
void decode_prmt(struct builder *builder, const struct tokens *tokens);
void decode_setp(struct builder *builder, const struct tokens *tokens);
void decode_set(struct builder *builder, const struct tokens *tokens);
void decode_mov(struct builder *builder, const struct tokens *tokens);
void decode_logic(struct builder *builder, const struct tokens *tokens);
void decode_lop3(struct builder *builder, const struct tokens *tokens);
void decode_video(struct builder *builder, const struct tokens *tokens);
void decode_load(struct builder *builder, const struct tokens *tokens);
void decode_store(struct builder *builder, const struct tokens *tokens);
void decode_atomic(struct builder *builder, const struct tokens *tokens);
void decode_cvta(struct builder *builder, const struct tokens *tokens);
void decode_isspacep(struct builder *builder, const struct tokens *tokens);
void decode_cp(struct builder *builder, const struct tokens *tokens);
void decode_tex(struct builder *builder, const struct tokens *tokens);
void decode_tex_query(struct builder *builder, const struct tokens *tokens);
void decode_surface_load(struct builder *builder, const struct tokens *tokens);
void decode_surface_store(struct builder *builder, const struct tokens *tokens);
void decode_surface_reduction(struct builder *builder, const struct tokens *tokens);
void decode_stack(struct builder *builder, const struct tokens *tokens);
void decode_branch(struct builder *builder, const struct tokens *tokens);
void decode_branch_indexed(struct builder *builder, const struct tokens *tokens);
void decode_call(struct builder *builder, const struct tokens *tokens);
void decode_ret(struct builder *builder, const struct tokens *tokens);
void decode_exit(struct builder *builder, const struct tokens *tokens);
void decode_trap(struct builder *builder, const struct tokens *tokens);
void decode_policy(struct builder *builder, const struct tokens *tokens);
void decode_nop(struct builder *builder, const struct tokens *tokens);
void decode_fence(struct builder *builder, const struct tokens *tokens);
void decode_nanosleep(struct builder *builder, const struct tokens *tokens);
void decode_barrier(struct builder *builder, const struct tokens *tokens);
void decode_shuffle(struct builder *builder, const struct tokens *tokens);
void decode_vote(struct builder *builder, const struct tokens *tokens);
void decode_match(struct builder *builder, const struct tokens *tokens);
void decode_redux(struct builder *builder, const struct tokens *tokens);
void decode_elect(struct builder *builder, const struct tokens *tokens);
void decode_activemask(struct builder *builder, const struct tokens *tokens);
void decode_mma(struct builder *builder, const struct tokens *tokens);
void decode_wmma(struct builder *builder, const struct tokens *tokens);
void decode_matrices(struct builder *builder, const struct tokens *tokens);
void decode_movmatrix(struct builder *builder, const struct tokens *tokens);
void decode_mbarrier(struct builder *builder, const struct tokens *tokens);
void decode_copy_arrive(struct builder *builder, const struct tokens *tokens);

/* ---- decode_bulk.c ---- */
void decode_mapa(struct builder *builder, const struct tokens *tokens);
void decode_cluster_barrier(struct builder *builder, const struct tokens *tokens);
void decode_bulk(struct builder *builder, const struct tokens *tokens);

/* ---- decode_mbarrier.c ---- */
/* Bytes have come, for the barrier at this operand. */
void emit_completion(struct builder *builder, unsigned address, enum ptx_space space,
                     unsigned bytes);

/* ---- decode_wide.c: 128 bits ---- */
void decode_mov_b128(struct builder *builder);
void decode_load_b128(struct builder *builder, const struct access *access);
void decode_store_b128(struct builder *builder, const struct access *access);
void decode_atomic_b128(struct builder *builder, const struct access *access, bool compares);

/* ---- opcodes.c ---- */
struct opcode {
    const char *name;
    decode_fn decode;
    bool is_control;   /* a guard on it makes lanes part */
    const char *forms; /* for the coverage table */
};
const struct opcode *opcode_find(const char *name, size_t length);
/* NULL behind the last. */
const struct opcode *opcode_at(unsigned index);

/* ---- refused.c ---- */
struct refused {
    const char *opcode;   /* an example */
    const char *operands; /* of registers %rN, %rdN, %fN, %hN, %pN and the shared variable box */
    const char *forms;    /* for the coverage document */
};
/* Of any version up to 9.0, whether it is run or not. */
bool is_opcode_of_ptx(const char *name, size_t length);
/* NULL behind the last. */
const struct refused *refused_at(unsigned index);
