/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs rows of instructions, see rows.h.
 */
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 512

static double f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static const char text_head[] = ".version 8.6\n.target sm_90\n.address_size 64\n";

static size_t write_kernel(char *text, size_t size, const struct row *row, unsigned number)
{
    static const char *const names[] = {"%d", "%a", "%b", "%c"};
    size_t used = (size_t)snprintf(text, size,
                                   ".visible .entry k%u(.param .u64 out, .param .u64 in)\n{\n"
                                   ".reg .b64 %%x<4>; .reg .b32 %%i; .reg .pred %%p;\n",
                                   number);
    for (unsigned i = 0; i < 4; i++)
        used += (size_t)snprintf(text + used, size - used, ".reg .b%u %s;\n",
                                 row->sizes[i] ? row->sizes[i] : 32, names[i]);
    used += (size_t)snprintf(text + used, size - used,
                             "ld.param.u64 %%x1, [out];\nld.param.u64 %%x2, [in];\n"
                             "mov.u32 %%i, %%tid.x;\nmul.wide.u32 %%x3, %%i, 8;\n"
                             "add.u64 %%x1, %%x1, %%x3;\nmul.wide.u32 %%x3, %%i, 24;\n"
                             "add.u64 %%x2, %%x2, %%x3;\n");
    for (unsigned i = 1; i < 4; i++) {
        if (row->sizes[i])
            used += (size_t)snprintf(text + used, size - used, "ld.global.b%u %s, [%%x2+%u];\n",
                                     row->sizes[i], names[i], 8 * (i - 1));
    }
    used += (size_t)snprintf(text + used, size - used, "%s %s", row->opcode,
                             row->is_comparison ? "%p" : "%d");
    for (unsigned i = 1; i < 4; i++) {
        if (row->sizes[i])
            used += (size_t)snprintf(text + used, size - used, ", %s", names[i]);
    }
    if (row->last)
        used += (size_t)snprintf(text + used, size - used, ", %s", row->last);
    return used +
           (size_t)snprintf(text + used, size - used, ";\n%sst.global.b%u [%%x1], %%d;\nret;\n}\n",
                            row->is_comparison ? "selp.b32 %d, 1, 0, %p;\n" : "", row->sizes[0]);
}

static uint64_t some_bits(uint64_t *state, unsigned i)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     INT64_MAX,
                                     1ull << 63,
                                     UINT64_MAX,
                                     31,
                                     32,
                                     33,
                                     0x3f800000,
                                     0xbf800000,
                                     0x7f800000,
                                     0xff800000,
                                     0x7fc00000,
                                     0x00000001,
                                     0x007fffff,
                                     0x4f000000,
                                     0x3ff0000000000000,
                                     0x7ff0000000000000,
                                     0x7ff8000000000000,
                                     0x000fffffffffffff,
                                     0x43e0000000000000,
                                     0x8000000000000001};
    uint64_t random = (uint64_t)unit_random(state) << 40 ^ (uint64_t)unit_random(state) << 20 ^
                      unit_random(state);
    if (i % 4 == 0)
        return edges[random % (sizeof(edges) / sizeof(edges[0]))];
    /* Of numbers close to one as well, where most of floating point's life is. */
    return i % 4 == 1   ? (random & 0x8003ffff83ffffff) | 0x3ff000003f800000
           : i % 4 == 2 ? random >> random % 64
                        : random;
}

static void check_row(struct machine *machine, const struct row *row, unsigned number,
                      const uint64_t *in, uint64_t *out)
{
    char name[16];
    snprintf(name, sizeof(name), "k%u", number);
    memset(out, 0, COUNT * sizeof(*out));
    if (machine_launch(machine, name, 1, COUNT, 0, (void *[]){&out, &in}) != CUDA_SUCCESS)
        fail_msg("%s: %s", row->opcode, machine->message);
    for (unsigned i = 0; i < COUNT; i++) {
        const uint64_t *operands = &in[3 * i];
        uint64_t mask = UINT64_MAX >> (64 - row->sizes[0]);
        if (row->defined && !row->defined(row, operands[0], operands[1]))
            continue;
        uint64_t wanted = row->reference(row, operands[0], operands[1], operands[2]) & mask;
        bool both_nan = row->is_real && row->sizes[0] == 64 && wanted == mask && isnan(f64(out[i]));
        if (out[i] != wanted && !both_nan)
            fail_msg("%s of %llx, %llx, %llx: %llx, not %llx", row->opcode,
                     (unsigned long long)operands[0], (unsigned long long)operands[1],
                     (unsigned long long)operands[2], (unsigned long long)out[i],
                     (unsigned long long)wanted);
    }
}

void rows_check(const struct row *rows, unsigned count)
{
    size_t size = sizeof(text_head) + count * 1024u, used = sizeof(text_head) - 1;
    char *text = malloc(size);
    memcpy(text, text_head, sizeof(text_head));
    for (unsigned i = 0; i < count; i++)
        used += write_kernel(text + used, size - used, &rows[i], i);
    struct machine *machine = machine_create_from(text);
    uint64_t *out = machine_memory(machine, COUNT * sizeof(*out));
    uint64_t *in = machine_memory(machine, 3 * COUNT * sizeof(*in)), random = 17;
    for (unsigned i = 0; i < 3 * COUNT; i++)
        in[i] = some_bits(&random, i / 3 + i % 3);
    for (unsigned i = 0; i < count; i++)
        check_row(machine, &rows[i], i, in, out);
    machine_destroy(machine);
    free(text);
}
