/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that touch memory. A thread touches its own part of global, shared and local memory at
 * any time. It touches what others wrote only between barriers, so no kernel has a race.
 */
#include <stdio.h>

#include "kernel_text.h"

struct shape {
    const char *type;
    unsigned size;
    const char *bank; /* the type of register that it is loaded to */
};

static const struct shape shapes[] = {
    {"u8", 1, "u16"},  {"s8", 1, "s16"},  {"u8", 1, "u32"},  {"s8", 1, "s32"},  {"b8", 1, "b32"},
    {"u16", 2, "u16"}, {"s16", 2, "s32"}, {"u16", 2, "u32"}, {"b16", 2, "b16"}, {"s16", 2, "s64"},
    {"b32", 4, "b32"}, {"u32", 4, "u64"}, {"s32", 4, "s64"}, {"f32", 4, "f32"}, {"b64", 8, "b64"},
    {"u64", 8, "b64"}, {"f64", 8, "f64"}, {"b32", 4, "b32"},
};

struct place {
    const char *space; /* "" for a generic address */
    const char *address;
    unsigned size; /* a power of two */
    bool is_constant;
};

static const struct place places[] = {
    {".global", "%scratch", SCRATCH_PER_THREAD, false},
    {"", "%scratch", SCRATCH_PER_THREAD, false},
    {".shared", "%mine", SHARED_PER_THREAD, false},
    {"", "%mine_generic", SHARED_PER_THREAD, false},
    {".local", "%stack", LOCAL_PER_THREAD, false},
    {"", "%stack_generic", LOCAL_PER_THREAD, false},
    {".const", "%table", TABLE_SIZE, true},
};

/* Registers of a vector, all different. */
static const char *vector(struct builder *builder, const char *bank, unsigned width)
{
    if (width == 1)
        return register_for(builder, bank);
    const char *first = register_for(builder, bank);
    unsigned count = first[1] == 'h'   ? NARROW_REGISTERS
                     : first[1] == 'r' ? REGISTERS
                                       : WIDE_REGISTERS;
    unsigned at = pick(builder, count), step = 1 + 2 * pick(builder, 2);
    char letter = first[1];
    unsigned names[4];
    for (unsigned i = 0; i < 4; i++)
        names[i] = (at + i * step) % count;
    if (width == 2)
        return text_of("{%%%c%u, %%%c%u}", letter, names[0], letter, names[1]);
    return text_of("{%%%c%u, %%%c%u, %%%c%u, %%%c%u}", letter, names[0], letter, names[1], letter,
                   names[2], letter, names[3]);
}

/* Into %at: an address in the place that some register chooses, aligned for `size`. */
static void write_address(struct builder *builder, const struct place *place, unsigned size)
{
    say(builder, "and.b32 %%t32, %s, %u;", any_register(builder), (place->size - 1) & ~(size - 1));
    say(builder, "cvt.u64.u32 %%at, %%t32;\nadd.s64 %%at, %%at, %s;", place->address);
}

static void write_access(struct builder *builder)
{
    const struct place *place = &PICK(builder, places);
    const struct shape *shape = &PICK(builder, shapes);
    unsigned width = 1u << pick(builder, 3);
    while (width * shape->size > 16)
        width /= 2;
    const char *lanes = width == 1 ? "" : width == 2 ? ".v2" : ".v4";
    const char *address = "[%at]";
    if (chance(builder, 3))
        address = text_of("[%s+%u]", place->address,
                          pick(builder, place->size / (width * shape->size)) * width * shape->size);
    else
        write_address(builder, place, width * shape->size);
    const char *registers = vector(builder, shape->bank, width);
    bool is_store = !place->is_constant && chance(builder, 2);
    const char *when = guard(builder);
    if (is_store)
        say(builder, "%sst%s%s.%s %s, %s;", when, place->space, lanes, shape->type, address,
            registers);
    else
        say(builder, "%sld%s%s.%s %s, %s;", when, place->space, lanes, shape->type, registers,
            address);
}

/* On a word of the thread's own, so that the old value is known. */
static void write_atomic(struct builder *builder)
{
    static const struct {
        const char *operation;
        const char *type;
    } operations[] = {
        {"add", "u32"}, {"add", "s32"}, {"add", "u64"},  {"min", "u32"},  {"min", "s32"},
        {"min", "s64"}, {"max", "u32"}, {"max", "s32"},  {"max", "u64"},  {"and", "b32"},
        {"or", "b32"},  {"xor", "b32"}, {"and", "b64"},  {"or", "b64"},   {"xor", "b64"},
        {"inc", "u32"}, {"dec", "u32"}, {"exch", "b32"}, {"exch", "b64"}, {"cas", "b32"},
        {"cas", "b64"},
    };
    unsigned which = pick(builder, sizeof(operations) / sizeof(operations[0]));
    const char *operation = operations[which].operation, *type = operations[which].type;
    const struct place *place = &places[pick(builder, 4)];
    write_address(builder, place, 8);
    const char *when = guard(builder), *to = register_for(builder, type);
    const char *a = register_for(builder, type);
    const char *b = operation[0] == 'c' ? text_of(", %s", register_for(builder, type)) : "";
    say(builder, "%satom%s.%s.%s %s, [%%at], %s%s;", when, place->space, operation, type, to, a, b);
}

void write_memory(struct builder *builder)
{
    if (chance(builder, 4))
        write_atomic(builder);
    else
        write_access(builder);
}

/* ---- Between threads ---- */

static void write_barrier(struct builder *builder)
{
    say(builder, "bar.warp.sync %s;", warp_mask(builder));
    say(builder, "bar.sync 0;");
}

/* Everybody writes a place of its own, then reads that of another. */
void write_exchange(struct builder *builder)
{
    bool is_wide = chance(builder, 2);
    const char *type = is_wide ? "b64" : "b32";
    const char *from = register_for(builder, type), *to = register_for(builder, type);
    const char *index = any_register(builder);
    say(builder, "rem.u32 %%t32, %s, %u;", index, builder->threads);
    say(builder, "cvt.u64.u32 %%at, %%t32;\nshl.b64 %%at, %%at, 3;");
    say(builder, "add.s64 %%at, %%at, %%exchange;");
    write_barrier(builder);
    say(builder, "st.shared.%s [%%exchanged], %s;", type, from);
    write_barrier(builder);
    say(builder, "ld.shared.%s %s, [%%at];", type, to);
}

/* All add to a few counters. The order does not matter, and what was there before is not read. */
void write_counters(struct builder *builder)
{
    static const char *const operations[] = {"add.u32", "min.s32", "max.u32", "xor.b32",
                                             "or.b32",  "and.b32", "add.s32", "max.s32"};
    const char *operation = PICK(builder, operations), *value = any_register(builder);
    const char *index = any_register(builder), *when = guard(builder);
    const char *to = any_register(builder);
    unsigned read = pick(builder, SHARED_COUNTERS);
    say(builder, "and.b32 %%t32, %s, %u;\nshl.b32 %%t32, %%t32, 2;", index, SHARED_COUNTERS - 1);
    say(builder, "cvt.u64.u32 %%at, %%t32;\nadd.s64 %%at, %%at, %%counters;");
    write_barrier(builder);
    for (unsigned i = 0; i < SHARED_COUNTERS; i++)
        say(builder, "st.shared.b32 [counters+%u], %u;", 4 * i, 0x1234567 * i);
    write_barrier(builder);
    say(builder, "%sred.shared.%s [%%at], %s;", when, operation, value);
    write_barrier(builder);
    say(builder, "ld.shared.b32 %s, [counters+%u];", to, 4 * read);
}
