/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks cover a box exactly once, in order, and none is larger than allowed. */
#include "unit.h"

#include "copy_plan.h"

#include <stdlib.h>
#include <string.h>

#define SLOT (1u << 20)

static struct box row(uint64_t bytes)
{
    return (struct box){
        .dst = 0x200000000000,
        .src = 0x10000,
        .dst_pitch = bytes,
        .src_pitch = bytes,
        .dst_height = 1,
        .src_height = 1,
        .width = bytes,
        .height = 1,
        .depth = 1,
    };
}

static void test_piece_sizes(void **state)
{
    assert_int_equal(copy_chunk_size(20000, SLOT, false), 20032);
    assert_int_equal(copy_chunk_size(256 << 10, SLOT, false), 256 << 10);
    assert_int_equal(copy_chunk_size((256 << 10) + 1, SLOT, false), (256 << 10) + 64);
    assert_int_equal(copy_chunk_size(1 << 20, SLOT, false), 512 << 10);
    assert_int_equal(copy_chunk_size(4 << 20, SLOT, false), 512 << 10);
    assert_int_equal(copy_chunk_size(8 << 20, SLOT, false), 512 << 10);
    assert_int_equal(copy_chunk_size(16 << 20, SLOT, false), 1 << 20);
    assert_int_equal(copy_chunk_size(1ull << 40, SLOT, false), 1 << 20);
    assert_int_equal(copy_chunk_size(1 << 20, SLOT, true), 1 << 20);
    assert_int_equal(copy_chunk_size(20000, SLOT, true), SLOT);
}

static void test_a_piece_fits_whatever_the_total(void **state)
{
    uint64_t seed = 7;

    for (int i = 0; i < 100000; i++) {
        uint64_t total = 1 + unit_random(&seed) % (40u << 20);
        uint64_t size = copy_chunk_size(total, SLOT, false);

        assert_true(size > 0 && size <= SLOT);
        assert_true((total + size - 1) / size <= 17 || size == SLOT);
    }
}

static void check_row(uint64_t bytes, bool upload)
{
    struct box box = row(bytes);
    struct walk walk = walk_begin(&box, upload, SLOT, false);
    struct chunk chunk;
    uint64_t at = 0;

    while (walk_next(&walk, &chunk)) {
        assert_int_equal(chunk.rows, 1);
        assert_int_equal(chunk.window, (upload ? box.dst : box.src) + at);
        assert_int_equal(chunk.host, (upload ? box.src : box.dst) + at);
        assert_true(chunk.width > 0 && chunk.width <= SLOT);
        at += chunk.width;
    }
    assert_int_equal(at, bytes);
    assert_false(walk_next(&walk, &chunk));
}

static void test_a_row(void **state)
{
    uint64_t seed = 3;

    check_row(1, true);
    check_row(64u << 20, false);
    for (int i = 0; i < 1000; i++)
        check_row(1 + unit_random(&seed) % (20u << 20), i % 2);
}

/* Counts each byte of the program's side, which lies in a buffer of `host_size` from 0 on. */
static void mark(const struct chunk *chunk, unsigned char *seen, uint64_t host_size)
{
    for (uint64_t y = 0; y < chunk->rows; y++)
        for (uint64_t x = 0; x < chunk->width; x++) {
            uint64_t at = chunk->host + y * chunk->host_pitch + x;

            assert_true(at < host_size);
            seen[at]++;
        }
}

static void check_marks(const struct box *box, const unsigned char *seen)
{
    for (uint64_t z = 0; z < box->src_height * box->depth; z++)
        for (uint64_t x = 0; x < box->src_pitch; x++)
            assert_int_equal(seen[z * box->src_pitch + x],
                             z % box->src_height < box->height && x < box->width);
}

static void check_box(uint64_t width, uint64_t height, uint64_t depth, uint64_t slot)
{
    struct box box = {
        .dst = 0x200000000000,
        .dst_pitch = width + 11,
        .dst_height = height,
        .src_pitch = width + 3,
        .src_height = height + 2,
        .width = width,
        .height = height,
        .depth = depth,
    };
    uint64_t host_size = box.src_pitch * box.src_height * depth;
    unsigned char *seen = calloc(host_size, 1);
    struct walk walk = walk_begin(&box, true, slot, false);
    struct chunk chunk;

    while (walk_next(&walk, &chunk)) {
        assert_true(chunk.width * chunk.rows <= slot);
        mark(&chunk, seen, host_size);
    }
    check_marks(&box, seen);
    free(seen);
}

static void test_boxes(void **state)
{
    uint64_t seed = 5;

    check_box(300000, 3, 2, 1u << 18);
    for (int i = 0; i < 200; i++)
        check_box(1 + unit_random(&seed) % 900, 1 + unit_random(&seed) % 30,
                  1 + unit_random(&seed) % 4, 64 + unit_random(&seed) % 2000);
}

static void test_contiguous_rows_are_one(void **state)
{
    struct box box = row(100), flat;

    box.height = box.dst_height = box.src_height = 7;
    box.depth = 3;
    flat = box_flatten(&box);
    assert_int_equal(flat.width, 2100);
    assert_int_equal(flat.height * flat.depth, 1);
    box.src_pitch = 101;
    flat = box_flatten(&box);
    assert_memory_equal(&flat, &box, sizeof(box));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_piece_sizes),
        cmocka_unit_test(test_a_piece_fits_whatever_the_total),
        cmocka_unit_test(test_a_row),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_contiguous_rows_are_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
