/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that branch. Every loop has a bound, so every kernel ends.
 */
#include "kernel_text.h"

#define DEEPEST 3

/* Statements that not all threads come to. */
static void write_divergent(struct builder *builder, unsigned count)
{
    bool was_uniform = builder->is_uniform;
    builder->is_uniform = false;
    write_statements(builder, count);
    builder->is_uniform = was_uniform;
}

static void write_if(struct builder *builder)
{
    unsigned label = builder->labels;
    builder->labels += 2;
    unsigned first = 1 + pick(builder, 4), second = pick(builder, 4);
    say(builder, "@%s bra L%u;", condition(builder), label);
    write_divergent(builder, first);
    if (second)
        say(builder, "bra L%u;", label + 1);
    say(builder, "L%u:", label);
    write_divergent(builder, second);
    say(builder, "L%u:", label + 1);
}

/* Two branches that overlap: no pair of braces says this. */
static void write_overlap(struct builder *builder)
{
    unsigned label = builder->labels;
    builder->labels += 3;
    unsigned counts[3];
    for (unsigned i = 0; i < 3; i++)
        counts[i] = 1 + pick(builder, 3);
    unsigned first = pick(builder, PREDICATE_REGISTERS),
             second = pick(builder, PREDICATE_REGISTERS);
    say(builder, "@%s bra L%u;", condition(builder), label);
    write_divergent(builder, counts[0]);
    say(builder, "@%%p%u bra L%u;", first, label + 1);
    say(builder, "L%u:", label);
    write_divergent(builder, counts[1]);
    say(builder, "@!%%p%u bra L%u;", second, label + 2);
    say(builder, "L%u:", label + 1);
    write_divergent(builder, counts[2]);
    say(builder, "L%u:", label + 2);
}

/* All threads go round as often, or each as often as a register says; some may leave early. */
static void write_loop(struct builder *builder)
{
    unsigned label = builder->labels, depth = builder->depth;
    builder->labels += 2;
    bool is_uniform = builder->is_uniform && chance(builder, 2);
    unsigned count = 1 + pick(builder, 4), rounds = 1 + pick(builder, 3);
    unsigned leave = pick(builder, PREDICATE_REGISTERS);
    bool leaves = !is_uniform && chance(builder, 2);
    if (is_uniform)
        say(builder, "mov.u32 %%c%u, %u;", depth, rounds);
    else
        say(builder, "and.b32 %%c%u, %s, 3;", depth, any_register(builder));
    say(builder, "L%u:", label);
    if (is_uniform)
        write_statements(builder, count);
    else
        write_divergent(builder, count);
    if (leaves)
        say(builder, "@%%p%u bra L%u;", leave, label + 1);
    say(builder, "sub.s32 %%c%u, %%c%u, 1;\nsetp.gt.s32 %%q, %%c%u, 0;", depth, depth, depth);
    say(builder, "@%%q bra L%u;\nL%u:", label, label + 1);
}

static void write_switch(struct builder *builder)
{
    unsigned label = builder->labels;
    builder->labels += 5;
    say(builder, "and.b32 %%t32, %s, 3;", any_register(builder));
    say(builder, "T%u: .branchtargets L%u, L%u, L%u, L%u;", label, label, label + 1, label + 2,
        label + 3);
    say(builder, "brx.idx %%t32, T%u;", label);
    for (unsigned i = 0; i < 4; i++) {
        say(builder, "L%u:", label + i);
        write_divergent(builder, 1);
        if (i != 1)
            say(builder, "bra L%u;", label + 4);
    }
    say(builder, "L%u:", label + 4);
}

static void write_branching(struct builder *builder)
{
    unsigned kind = pick(builder, 8);
    builder->depth++;
    if (kind < 3)
        write_if(builder);
    else if (kind < 5)
        write_loop(builder);
    else if (kind < 7)
        write_overlap(builder);
    else
        write_switch(builder);
    builder->depth--;
}

static void write_together(struct builder *builder)
{
    unsigned kind = pick(builder, 8);
    if (kind < 5)
        write_collective(builder);
    else if (kind < 7)
        write_exchange(builder);
    else
        write_counters(builder);
}

static void write_statement(struct builder *builder)
{
    unsigned kind = pick(builder, 20);
    if (kind < 2 && builder->depth < DEEPEST && !builder->is_in_function)
        write_branching(builder);
    else if (kind < 5 && builder->is_uniform)
        write_together(builder);
    else
        write_simple(builder);
}

void write_statements(struct builder *builder, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t random = builder->random;
        statement_begin(builder);
        write_statement(builder);
        builder->random = random;
    }
}
