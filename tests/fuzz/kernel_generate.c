/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a kernel: registers are loaded, statements work on them, registers are stored.
 */
#include "kernel_generate.h"

#include <stdio.h>
#include <string.h>

#include "kernel_rows.h"
#include "kernel_text.h"

enum {
    STATE_WIDE = 0,
    STATE_REGISTERS = STATE_WIDE + 8 * WIDE_REGISTERS,
    STATE_NARROW = STATE_REGISTERS + 4 * REGISTERS,
    STATE_PREDICATES = STATE_NARROW + 2 * NARROW_REGISTERS,
    STATE_END = STATE_PREDICATES + 4 * PREDICATE_REGISTERS,
};
_Static_assert(STATE_END <= KERNEL_STATE, "a thread's registers do not fit");

static const unsigned block_sizes[] = {32, 64, 96, 45};

static void write_registers(struct builder *builder)
{
    say(builder, ".reg .b16 %%h<%u>, %%t16, %%t16a, %%t16b;", NARROW_REGISTERS);
    say(builder, ".reg .b32 %%r<%u>, %%t32;", REGISTERS);
    say(builder, ".reg .b64 %%d<%u>, %%t64;", WIDE_REGISTERS);
    say(builder, ".reg .pred %%p<%u>, %%q;", PREDICATE_REGISTERS);
}

static void write_head(struct builder *builder)
{
    say(builder, ".version 8.3\n.target sm_90\n.address_size 64");
    say(builder, ".const .align 16 .b8 table[%u] = {", TABLE_SIZE);
    for (unsigned i = 0; i < TABLE_SIZE; i++)
        say(builder, "%u%s", (unsigned)(mix_bits(builder->seed + i) & 255),
            i + 1 < TABLE_SIZE ? "," : "};");
}

/* All registers from two parameters. */
static void write_function(struct builder *builder, bool is_first)
{
    builder->is_in_function = true;
    builder->is_uniform = false;
    write_registers(builder);
    say(builder, "ld.param.b32 %%r0, [a];\nld.param.b64 %%d0, [b];");
    for (unsigned i = 1; i < REGISTERS; i++)
        say(builder, "mad.lo.u32 %%r%u, %%r%u, %u, %u;", i, i - 1, 0x9e3779b1u * i, 77 + i);
    for (unsigned i = 1; i < WIDE_REGISTERS; i++)
        say(builder, "mad.wide.u32 %%d%u, %%r%u, %u, %%d%u;", i, i, 0x85ebca6bu, i - 1);
    for (unsigned i = 0; i < NARROW_REGISTERS; i++)
        say(builder, "cvt.u16.u32 %%h%u, %%r%u;", i, i);
    for (unsigned i = 0; i < PREDICATE_REGISTERS; i++)
        say(builder, "setp.lt.s32 %%p%u, %%r%u, %%r%u;", i, i, i + 1);
    write_statements(builder, 6);
    say(builder, is_first ? "st.param.b32 [c], %%r1;" : "st.param.b64 [c], %%d1;");
    say(builder, "ret;\n}");
    builder->is_in_function = false;
    builder->is_uniform = true;
}

static void write_functions(struct builder *builder)
{
    say(builder, ".func (.param .b32 c) first(.param .b32 a, .param .b64 b)\n{");
    write_function(builder, true);
    say(builder, ".func (.param .b64 c) second(.param .b64 b, .param .b32 a)\n{");
    write_function(builder, false);
    builder->functions = 2;
}

static void write_addresses(struct builder *builder)
{
    say(builder, ".reg .b64 %%state, %%scratch, %%mine, %%mine_generic, %%stack, %%stack_generic;");
    say(builder, ".reg .b64 %%table, %%exchange, %%exchanged, %%counters, %%at;\n.reg .b32 %%c<8>, "
                 "%%mask, %%some;");
    say(builder, ".reg .pred %%chosen;");
    say(builder, ".shared .align 16 .b8 own[%u];", SHARED_PER_THREAD * builder->threads);
    say(builder, ".shared .align 16 .b8 exchange[%u];", 8 * builder->threads);
    say(builder, ".shared .align 16 .b8 counters[%u];", 4 * SHARED_COUNTERS);
    say(builder, ".local .align 16 .b8 stack[%u];", LOCAL_PER_THREAD);
    say(builder, "mov.u32 %%t32, %%ctaid.x;\nmov.u32 %%r0, %%tid.x;");
    say(builder, "mad.lo.u32 %%t32, %%t32, %u, %%r0;", builder->threads);
    say(builder, "ld.param.b64 %%state, [states];\nld.param.b64 %%scratch, [scratches];");
    say(builder, "mad.wide.u32 %%state, %%t32, %u, %%state;", KERNEL_STATE);
    say(builder, "mad.wide.u32 %%scratch, %%t32, %u, %%scratch;", SCRATCH_PER_THREAD);
    say(builder, "mov.b64 %%mine, own;\nmad.wide.u32 %%mine, %%r0, %u, %%mine;", SHARED_PER_THREAD);
    say(builder, "mov.b64 %%counters, counters;\nmov.b64 %%exchange, exchange;");
    say(builder, "mad.wide.u32 %%exchanged, %%r0, 8, %%exchange;");
    say(builder, "cvta.shared.u64 %%mine_generic, %%mine;");
    say(builder, "mov.b64 %%stack, stack;\ncvta.local.u64 %%stack_generic, %%stack;");
    say(builder, "mov.b64 %%table, table;");
    /* The lanes that exist of this warp. */
    say(builder, "and.b32 %%t32, %%r0, 0xffffffe0;\nsub.u32 %%t32, %u, %%t32;", builder->threads);
    say(builder, "bmsk.clamp.b32 %%mask, 0, %%t32;");
}

static void write_loads(struct builder *builder)
{
    for (unsigned i = 0; i < WIDE_REGISTERS; i++)
        say(builder, "ld.global.b64 %%d%u, [%%state+%u];", i, STATE_WIDE + 8 * i);
    for (unsigned i = 0; i < REGISTERS; i++)
        say(builder, "ld.global.b32 %%r%u, [%%state+%u];", i, STATE_REGISTERS + 4 * i);
    for (unsigned i = 0; i < NARROW_REGISTERS; i++)
        say(builder, "ld.global.b16 %%h%u, [%%state+%u];", i, STATE_NARROW + 2 * i);
    for (unsigned i = 0; i < PREDICATE_REGISTERS; i++) {
        say(builder, "ld.global.b32 %%t32, [%%state+%u];", STATE_PREDICATES + 4 * i);
        say(builder, "setp.lt.s32 %%p%u, %%t32, 0;", i);
    }
    for (unsigned i = 0; i < LOCAL_PER_THREAD; i += 8)
        say(builder, "st.local.b64 [%%stack+%u], %%d%u;", i, i / 8 % WIDE_REGISTERS);
    for (unsigned i = 0; i < SHARED_PER_THREAD; i += 4)
        say(builder, "st.shared.b32 [%%mine+%u], %%r%u;", i, i / 4 % REGISTERS);
}

static void write_stores(struct builder *builder)
{
    for (unsigned i = 0; i < WIDE_REGISTERS; i++)
        say(builder, "st.global.b64 [%%state+%u], %%d%u;", STATE_WIDE + 8 * i, i);
    for (unsigned i = 0; i < REGISTERS; i++)
        say(builder, "st.global.b32 [%%state+%u], %%r%u;", STATE_REGISTERS + 4 * i, i);
    for (unsigned i = 0; i < NARROW_REGISTERS; i++)
        say(builder, "st.global.b16 [%%state+%u], %%h%u;", STATE_NARROW + 2 * i, i);
    for (unsigned i = 0; i < PREDICATE_REGISTERS; i++) {
        say(builder, "selp.b32 %%t32, 1, 0, %%p%u;", i);
        say(builder, "st.global.b32 [%%state+%u], %%t32;", STATE_PREDICATES + 4 * i);
    }
    /* A part of local and of shared memory is a result as well. */
    for (unsigned i = 0; i < 16; i += 4) {
        say(builder, "ld.local.b32 %%t32, [%%stack+%u];\nst.global.b32 [%%scratch+%u], %%t32;",
            4 * i, i);
        say(builder, "ld.shared.b32 %%t32, [%%mine+%u];\nst.global.b32 [%%scratch+%u], %%t32;",
            4 * i, 16 + i);
    }
}

static struct builder open_kernel(uint64_t seed)
{
    struct builder builder = {.seed = seed, .is_uniform = true};
    builder.random = mix_bits(seed ^ 0x5851f42d4c957f2d);
    builder.threads = PICK(&builder, block_sizes);
    builder.keeps_nans = seed % 16 == 15;
    write_head(&builder);
    write_functions(&builder);
    say(&builder, ".visible .entry kernel(.param .b64 states, .param .b64 scratches)\n{");
    write_registers(&builder);
    write_addresses(&builder);
    write_loads(&builder);
    return builder;
}

static struct kernel close_kernel(struct builder *builder, unsigned statements)
{
    write_stores(builder);
    say(builder, "ret;\n}");
    return (struct kernel){.text = builder->text,
                           .threads = builder->threads,
                           .statements = statements,
                           .keeps_nans = builder->keeps_nans};
}

struct kernel kernel_generate(uint64_t seed, unsigned limit)
{
    struct builder builder = open_kernel(seed);
    unsigned count = 24 + pick(&builder, 24);
    write_statements(&builder, limit < count ? limit : count);
    return close_kernel(&builder, count);
}

struct kernel kernel_of_all_rows(void)
{
    struct builder builder = open_kernel(0);
    for (unsigned i = 0; i < row_count(); i++) {
        const struct row *row = row_at(i);
        bool is_plain = row && (row->form == ROW_COMPUTE || row->form == ROW_CONVERT);
        for (unsigned j = 0; is_plain && j < row_spellings(row); j++)
            write_spelling(&builder, row, j);
    }
    return close_kernel(&builder, 0);
}

/* ---- Input and output ---- */

/* Values at which instructions do something special come often. */
static uint64_t interesting(uint64_t bits)
{
    static const uint64_t values[] = {
        0x0000000000000000, 0x8000000080000000, 0x3f8000003f800000, 0x7f8000007f800000,
        0xff800000ff800000, 0x7fc000007fc00000, 0x0000000100000001, 0x007fffff007fffff,
        0x7f7fffff7f7fffff, 0x4f0000004f000000, 0x3c003c003c003c00, 0x7bff7bff7bff7bff,
        0x7c007c007c007c00, 0x0001000100010001, 0x03ff03ff03ff03ff, 0x3f803f803f803f80,
        0xffffffffffffffff, 0x7fffffff7fffffff, 0x7fffffffffffffff, 0x8000000000000000,
        0x3ff0000000000000, 0x7ff0000000000000, 0xfff8000000000000, 0x000fffffffffffff,
        0x7fefffffffffffff, 0x4330000000000000, 0x3fe0000000000000, 0x41dfffffffc00000,
        0x000000050000000b, 0x00000000000000ff, 0x0000002000000040, 0x3f0000003fc00000,
    };
    return values[bits % (sizeof(values) / sizeof(values[0]))];
}

/* A quarter each: anything; something special; near 1 as a float; a small number. */
static uint64_t input_bits(uint64_t draw)
{
    uint64_t bits = mix_bits(draw);
    switch (draw >> 61 & 3) {
    case 0:
        return bits;
    case 1:
        return interesting(bits >> 8);
    case 2:
        return (bits & 0x83ffffff83ffffff) | 0x3c0000003c000000;
    default:
        return (bits & 0x0000003f0000003f) - (bits >> 63);
    }
}

void kernel_input(uint64_t seed, void *bytes, unsigned size)
{
    for (unsigned at = 0; at < size; at += 8) {
        uint64_t bits = input_bits(mix_bits(seed * 0x9e3779b97f4a7c15 + at + 1));
        memcpy((char *)bytes + at, &bits, 8);
    }
}

const char *kernel_register_at(unsigned offset)
{
    if (offset >= STATE_END)
        return "padding";
    if (offset >= STATE_PREDICATES)
        return text_of("%%p%u", (offset - STATE_PREDICATES) / 4);
    if (offset >= STATE_NARROW)
        return text_of("%%h%u", (offset - STATE_NARROW) / 2);
    if (offset >= STATE_REGISTERS)
        return text_of("%%r%u", (offset - STATE_REGISTERS) / 4);
    return text_of("%%d%u", offset / 8);
}

uint64_t kernel_hash(const void *bytes, unsigned size)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001b3;
    return mix_bits(hash);
}
