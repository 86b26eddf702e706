/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel while it is generated: its text, the random numbers, and the names of registers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NARROW_REGISTERS 8     /* %h: 16 bits */
#define REGISTERS 12           /* %r: 32 bits */
#define WIDE_REGISTERS 8       /* %d: 64 bits */
#define PREDICATE_REGISTERS 6  /* %p */
#define SCRATCH_PER_THREAD 128 /* bytes of global memory that are one thread's */
#define SHARED_PER_THREAD 64   /* of shared memory */
#define LOCAL_PER_THREAD 64
#define TABLE_SIZE 64 /* of constant memory */
#define SHARED_COUNTERS 8

struct builder {
    char *text;
    size_t length;
    size_t capacity;
    uint64_t seed;
    uint64_t random;     /* of the statement that is being written */
    uint64_t statements; /* written so far */
    unsigned threads;    /* in a block */
    unsigned labels;     /* handed out */
    unsigned depth;      /* of loops and branches */
    unsigned functions;  /* that may be called */
    bool is_uniform;     /* all threads of the block come here */
    bool is_in_function; /* of a .func: it has registers alone */
    bool keeps_nans;     /* NaNs stay as the instruction gave them */
};

void say(struct builder *builder, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t draw(struct builder *builder);
unsigned pick(struct builder *builder, unsigned count);
bool chance(struct builder *builder, unsigned one_in);
#define PICK(builder, list) ((list)[pick(builder, sizeof(list) / sizeof((list)[0]))])

/* A statement's own random numbers, so that a change within one leaves all others alone. The
 * numbers of the statement around it are kept by the caller. */
void statement_begin(struct builder *builder);

/* Names and operands. A statement of C calls only one of these that draws, since the order of its
 * arguments is the compiler's. Each returned text lasts for a dozen more calls. */
const char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *narrow(struct builder *builder);
const char *any_register(struct builder *builder);
const char *wide(struct builder *builder);
const char *predicate(struct builder *builder);
/* "%p1" or "!%p1". */
const char *condition(struct builder *builder);
/* "" or a condition: "@!%p1 ". */
const char *guard(struct builder *builder);
/* A register of the size that this type has: "s16" -> %h3. */
const char *register_for(struct builder *builder, const char *type);
/* A random literal of this type. */
const char *literal(struct builder *builder, const char *type);
/* The lanes of this warp that exist, as an operand. */
const char *warp_mask(const struct builder *builder);

/* kernel_statements.c: one that neither branches nor waits. */
void write_simple(struct builder *builder);
struct row;
void write_spelling(struct builder *builder, const struct row *row, unsigned index);
/* NaNs of the register become one NaN. `type` is that of the value: "f32", "bf16x2". */
void write_canonical_nan(struct builder *builder, const char *type, const char *name);

/* kernel_memory.c */
void write_memory(struct builder *builder);
/* Through shared memory, with barriers: all threads of the block come. */
void write_exchange(struct builder *builder);
void write_counters(struct builder *builder);

/* kernel_collective.c: all lanes of the warp come. */
void write_collective(struct builder *builder);

/* kernel_flow.c */
void write_statements(struct builder *builder, unsigned count);
