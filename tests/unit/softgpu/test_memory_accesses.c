/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads, stores and additions of a warp, in every shape that the engine knows a short way for, and
 * in some that it does not. A loop of two rounds sees to it that the second takes the short way,
 * which begins with what the first has learned.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* In bytes; lanes from `lanes` on do nothing. */
struct shape {
    uint32_t to_step;
    uint32_t from_step;
    uint32_t lanes;
};

static const char *const lists[] = {"", "%v0", "{%v0, %v1}", "", "{%v0, %v1, %v2, %v3}"};
static const char *const vectors[] = {"", "", ".v2", "", ".v4"};

/* Each lane moves one element, by way of shared memory or not. */
static struct machine *make_mover(const char *type, unsigned size, unsigned width, bool is_shared)
{
    char text[4096], way[1024] = "";
    if (is_shared)
        snprintf(way, sizeof(way),
                 "mul.lo.u32 %%r5, %%r3, %%r1;\nmov.u32 %%r6, room;\nadd.u32 %%r6, %%r6, %%r5;\n"
                 "st.shared%s.%s [%%r6+32], %s;\nld.shared%s.%s %s, [%%r6+32];\n",
                 vectors[width], type, lists[width], vectors[width], type, lists[width]);
    snprintf(text, sizeof(text),
             HEAD ".entry move(.param .u64 to, .param .u64 from, .param .u32 to_step, .param .u32 "
                  "from_step, .param .u32 lanes)\n{\n.reg .b32 %%r<9>;\n.reg .b64 %%d<9>;\n"
                  ".reg .%s %%v<4>;\n.reg .pred %%p<3>;\n.shared .align 32 .b8 room[4096];\n"
                  "ld.param.u64 %%d1, [to];\nld.param.u64 %%d2, [from];\n"
                  "ld.param.u32 %%r1, [to_step];\nld.param.u32 %%r2, [from_step];\n"
                  "ld.param.u32 %%r4, [lanes];\nmov.u32 %%r3, %%tid.x;\n"
                  "mul.wide.u32 %%d3, %%r3, %%r1;\nadd.u64 %%d1, %%d1, %%d3;\n"
                  "mul.wide.u32 %%d4, %%r3, %%r2;\nadd.u64 %%d2, %%d2, %%d4;\n"
                  "setp.ge.u32 %%p1, %%r3, %%r4;\n@%%p1 ret;\nmov.u32 %%r7, 0;\nagain:\n"
                  "ld.global%s.%s %s, [%%d2+32];\n%sst.global%s.%s [%%d1+64], %s;\n"
                  "add.u32 %%r7, %%r7, 1;\nsetp.lt.u32 %%p2, %%r7, 2;\n@%%p2 bra again;\nret;\n}\n",
             size == 8 ? "b64" : "b32", vectors[width], type, lists[width], way, vectors[width],
             type, lists[width]);
    return machine_create_from(text);
}

static void check_shape(struct machine *machine, unsigned bytes, const struct shape *shape)
{
    unsigned char expected[8192] = {0};
    unsigned char *to = machine_memory(machine, sizeof(expected));
    unsigned char *from = machine_memory(machine, sizeof(expected));
    for (unsigned i = 0; i < sizeof(expected); i++)
        from[i] = (unsigned char)(i * 37 + i / 251 + 1);
    for (unsigned lane = 0; lane < shape->lanes; lane++)
        memcpy(expected + 64 + lane * shape->to_step, from + 32 + lane * shape->from_step, bytes);
    struct shape copy = *shape;
    CUresult result =
        machine_launch(machine, "move", 1, 32, 0,
                       (void *[]){&to, &from, &copy.to_step, &copy.from_step, &copy.lanes});
    if (result != CUDA_SUCCESS || memcmp(to, expected, sizeof(expected)) != 0)
        fail_msg("%u bytes, steps %u and %u, %u lanes: %d %s", bytes, shape->to_step,
                 shape->from_step, shape->lanes, result, machine->message);
}

static void check_mover(const char *type, unsigned size, unsigned width, bool is_shared)
{
    struct machine *machine = make_mover(type, size, width, is_shared);
    uint32_t bytes = size * width;
    const struct shape shapes[] = {
        {bytes, bytes, 32},     {bytes, 0, 32},     {0, bytes, 32}, {2 * bytes, bytes, 32},
        {bytes, 3 * bytes, 32}, {bytes, bytes, 31}, {bytes, 0, 7},  {bytes, bytes, 1},
    };
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        /* By way of shared memory each lane needs a place of its own. */
        if (!is_shared || shapes[i].to_step)
            check_shape(machine, bytes, &shapes[i]);
    }
    machine_destroy(machine);
}

static void test_every_shape(void **state)
{
    static const struct {
        const char *type;
        unsigned size;
    } types[] = {{"u8", 1}, {"s8", 1}, {"u16", 2}, {"s16", 2}, {"u32", 4}, {"u64", 8}};
    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (unsigned width = 1; width <= 4 && width * types[i].size <= 16; width *= 2) {
            check_mover(types[i].type, types[i].size, width, false);
            check_mover(types[i].type, types[i].size, width, true);
        }
    }
}

/* Offsets in bytes by lane, so that groups of lanes read and write rows of their own. */
struct offsets {
    uint32_t to[32];
    uint32_t from[32];
};

static struct machine *make_scatterer(const char *type, const char *kind)
{
    char text[4096];
    const char *value = strcmp(type, "u64") == 0      ? "%w"
                        : strcmp(type, "v2.u16") == 0 ? "{%h1, %h2}"
                        : strcmp(type, "v2.u32") == 0 ? "{%e1, %e2}"
                        : strcmp(type, "v4.u32") == 0 ? "{%e1, %e2, %e3, %e4}"
                        : strcmp(type, "v2.u64") == 0 ? "{%w, %w1}"
                                                      : "%v";
    snprintf(text, sizeof(text),
             HEAD ".entry scatter(.param .u64 to, .param .u64 from, .param .u64 offsets)\n{\n"
                  ".reg .b32 %%r<9>;\n.reg .b64 %%d<9>;\n.reg .b64 %%w, %%w1;\n.reg .b32 %%v;\n"
                  ".reg .b32 %%e<5>;\n.reg .b16 %%h<3>;\n"
                  ".reg .pred %%p<3>;\n.shared .align 32 .b8 room[4096];\n"
                  "ld.param.u64 %%d1, [to];\nld.param.u64 %%d2, [from];\n"
                  "ld.param.u64 %%d5, [offsets];\nmov.u32 %%r3, %%tid.x;\n"
                  "mul.wide.u32 %%d3, %%r3, 4;\nadd.u64 %%d5, %%d5, %%d3;\n"
                  "ld.global.u32 %%r1, [%%d5];\nld.global.u32 %%r2, [%%d5+128];\n"
                  "cvt.u64.u32 %%d3, %%r1;\ncvt.u64.u32 %%d4, %%r2;\n"
                  "add.u64 %%d1, %%d1, %%d3;\nadd.u64 %%d2, %%d2, %%d4;\n"
                  "mov.u32 %%r6, room;\nadd.u32 %%r6, %%r6, %%r1;\nmov.u32 %%r7, 0;\nagain:\n"
                  "ld%s.global.%s %s, [%%d2];\nst%s.shared.%s [%%r6], %s;\n"
                  "ld%s.shared.%s %s, [%%r6];\nst%s.global.%s [%%d1], %s;\n"
                  "add.u32 %%r7, %%r7, 1;\nsetp.lt.u32 %%p2, %%r7, 2;\n@%%p2 bra again;\nret;\n}\n",
             kind, type, value, kind, type, value, kind, type, value, kind, type, value);
    return machine_create_from(text);
}

static void check_offsets(struct machine *machine, unsigned size, const struct offsets *offsets,
                          const char *what)
{
    unsigned char expected[4096] = {0};
    unsigned char *to = machine_memory(machine, sizeof(expected));
    unsigned char *from = machine_memory(machine, sizeof(expected));
    struct offsets *given = machine_memory(machine, sizeof(*given));
    *given = *offsets;
    for (unsigned i = 0; i < sizeof(expected); i++)
        from[i] = (unsigned char)(i * 37 + i / 251 + 1);
    for (unsigned lane = 0; lane < 32; lane++)
        memcpy(expected + offsets->to[lane], from + offsets->from[lane], size);
    CUresult result = machine_launch(machine, "scatter", 1, 32, 0, (void *[]){&to, &from, &given});
    if (result != CUDA_SUCCESS || memcmp(to, expected, sizeof(expected)) != 0)
        fail_msg("%u bytes, %s: %d %s", size, what, result, machine->message);
}

/* Where lanes meet, the last one's value is there. */
static void check_groups(const char *type, const char *kind, unsigned size)
{
    struct machine *machine = make_scatterer(type, kind);
    struct offsets tile, same, places, mixed, meets, odd, halves, turned;
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned eight = lane / 8, in_eight = lane % 8;
        tile.to[lane] = (lane / 16 * 40 + lane % 16) * size;
        tile.from[lane] = (lane / 16 * 64 + lane % 16) * size;
        same.to[lane] = eight * 5 * size;
        same.from[lane] = (eight * 16 + in_eight) * size;
        places.to[lane] = lane * size;
        places.from[lane] = (3 - eight) * 5 * size;
        mixed.to[lane] = lane * size;
        mixed.from[lane] = (eight * 7 + (eight % 2 ? in_eight : 0)) * size;
        meets.to[lane] = (eight * 3 + in_eight) * size;
        meets.from[lane] = lane * size;
        halves.to[lane] = (lane < 16 ? 50 : 3) * size;
        halves.from[lane] = (lane < 16 ? lane : 40) * size;
        turned.to[lane] = (lane < 16 ? lane + 30 : lane - 16) * size;
        turned.from[lane] = (lane < 16 ? 7 : lane + (lane == 29 ? 50 : 0)) * size;
        odd.to[lane] = (lane / 16 * 40 + lane % 16) * size + (lane == 13 ? 100 * size : 0);
        odd.from[lane] = (lane / 16 * 40 + lane % 16) * size + (lane == 21 ? 100 * size : 0);
    }
    check_offsets(machine, size, &tile, "a tile");
    check_offsets(machine, size, &same, "one place each");
    check_offsets(machine, size, &places, "from one place each");
    check_offsets(machine, size, &mixed, "rows and places");
    check_offsets(machine, size, &meets, "rows that overlap");
    check_offsets(machine, size, &halves, "halves at one place each");
    check_offsets(machine, size, &turned, "a place and a row but for one lane");
    check_offsets(machine, size, &odd, "one lane elsewhere");
    machine_destroy(machine);
}

static void test_groups_of_lanes(void **state)
{
    static const char *const kinds[] = {"", ".volatile", ".relaxed.gpu"};
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        check_groups("u8", kinds[i], 1);
        check_groups("u16", kinds[i], 2);
        check_groups("u32", kinds[i], 4);
        check_groups("u64", kinds[i], 8);
        check_groups("v2.u16", kinds[i], 4);
        check_groups("v2.u32", kinds[i], 8);
        check_groups("v4.u32", kinds[i], 16);
        check_groups("v2.u64", kinds[i], 16);
    }
}

/* The row ends with the memory, or one element later, or is not aligned. */
static void test_ends_of_a_row(void **state)
{
    static const struct {
        uint64_t start;
        CUresult result;
        const char *words;
    } cases[] = {
        {0, CUDA_SUCCESS, ""},
        {4, CUDA_ERROR_ILLEGAL_ADDRESS, "thread (31,0,0): an illegal read of 4 bytes"},
        {2, CUDA_ERROR_MISALIGNED_ADDRESS, "thread (0,0,0): a misaligned access of 4 bytes"},
    };
    for (unsigned i = 0; i < 3; i++) {
        struct machine *machine = make_mover("u32", 4, 1, false);
        unsigned char *to = machine_memory(machine, 192);
        /* Warm: the short way knows the range. */
        unsigned char *from = machine_memory(machine, 160);
        struct shape row = {4, 4, 32};
        void *arguments[] = {&to, &from, &row.to_step, &row.from_step, &row.lanes};
        assert_int_equal(machine_launch(machine, "move", 8, 32, 0, arguments), CUDA_SUCCESS);
        from += cases[i].start;
        CUresult result = machine_launch(machine, "move", 1, 32, 0, arguments);
        if (result != cases[i].result || !strstr(machine->message, cases[i].words))
            fail_msg("case %u: %d: %s", i, result, machine->message);
        machine_destroy(machine);
    }
}

/* Removed memory is not accessed, although warps have cached its range. */
static void test_removed(void **state)
{
    struct machine *machine = make_mover("u32", 4, 1, false);
    unsigned char *to = machine_memory(machine, 192), *from = machine_memory(machine, 160);
    struct shape row = {4, 4, 32};
    void *arguments[] = {&to, &from, &row.to_step, &row.from_step, &row.lanes};
    assert_int_equal(machine_launch(machine, "move", 8, 32, 0, arguments), CUDA_SUCCESS);
    assert_int_equal(sg_space_remove(machine->space, (uintptr_t)from), 0);
    assert_int_equal(machine_launch(machine, "move", 1, 32, 0, arguments),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    machine_destroy(machine);
}

/* What each lane got back tells the order in which they were served. */
static void check_additions(struct machine *machine, uint32_t step, uint32_t lanes, uint32_t blocks)
{
    uint32_t *sums = machine_memory(machine, 1024);
    uint32_t *before = machine_memory(machine, 1024 * 4);
    void *arguments[] = {&sums, &before, &step, &lanes};
    assert_int_equal(machine_launch(machine, "add", blocks, 32, 0, arguments), CUDA_SUCCESS);
    uint32_t expected = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (step == 0)
            expected += (lane + 1) * blocks;
        else
            assert_int_equal(sums[lane * step / 4], (lane + 1) * blocks);
        if (blocks == 1 && step == 0)
            assert_int_equal(before[lane], expected - (lane + 1));
    }
    if (step == 0)
        assert_int_equal(sums[0], expected);
}

static void test_additions(void **state)
{
    struct machine *machine = machine_create_from(
        HEAD ".entry add(.param .u64 sums, .param .u64 before, .param .u32 step, .param .u32 lanes)"
             "\n{\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .pred %p;\n"
             "ld.param.u64 %d1, [sums];\nld.param.u64 %d2, [before];\nld.param.u32 %r1, [step];\n"
             "ld.param.u32 %r2, [lanes];\nmov.u32 %r3, %tid.x;\nsetp.ge.u32 %p, %r3, %r2;\n"
             "@%p ret;\nmad.wide.u32 %d1, %r3, %r1, %d1;\nmad.wide.u32 %d2, %r3, 4, %d2;\n"
             "add.u32 %r4, %r3, 1;\natom.global.add.u32 %r5, [%d1], %r4;\n"
             "st.global.u32 [%d2], %r5;\nret;\n}\n");
    for (uint32_t lanes = 1; lanes <= 32; lanes += 31 / 2) {
        check_additions(machine, 0, lanes, 1);
        check_additions(machine, 4, lanes, 1);
        check_additions(machine, 0, lanes, 100);
        check_additions(machine, 8, lanes, 100);
    }
    machine_destroy(machine);
}

/* What lies across two ranges is allowed when both allow it and nothing is between them. */
static void test_adjacent_ranges(void **state)
{
    struct sg_space *space = sg_space_create();
    assert_int_equal(sg_space_add(space, 0x1000, 0x1000, SG_READ | SG_WRITE), 0);
    assert_int_equal(sg_space_add(space, 0x2000, 0x1000, SG_READ), 0);
    assert_int_equal(sg_space_add(space, 0x4000, 0x1000, SG_READ), 0);
    assert_true(sg_space_allows(space, 0x1800, 0x1800, SG_READ));
    assert_true(sg_space_allows(space, 0x1800, 0x800, SG_WRITE));
    assert_false(sg_space_allows(space, 0x1800, 0x801, SG_WRITE));
    assert_false(sg_space_allows(space, 0x1800, 0x1801, SG_READ));
    assert_false(sg_space_allows(space, 0x2800, 0x2000, SG_READ));
    sg_space_destroy(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape),   cmocka_unit_test(test_groups_of_lanes),
        cmocka_unit_test(test_ends_of_a_row), cmocka_unit_test(test_removed),
        cmocka_unit_test(test_additions),     cmocka_unit_test(test_adjacent_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
