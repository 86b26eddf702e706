/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of variables that libcudart keeps, before and after a move to another server. */
#include "client_symbol.h"

#include "client_fixture.h"

#define FIRST 0x7f0000001000u
#define SECOND 0x7f0000002000u
#define THIRD 0x7f0000003000u
#define SIZE 64u
#define OTHER 0x5000u /* an address of no variable */

static struct symbol *enter(uint64_t address, CUresult expected)
{
    struct symbol *symbol = calloc(1, sizeof(*symbol) + 2);

    symbol->variable =
        (struct allocation){.address = address, .size = SIZE, .kind = &kind_variable};
    strcpy(symbol->name, "v");
    assert_int_equal(symbol_enter(symbol), expected);
    return symbol;
}

static CUdeviceptr given(struct symbol *symbol, enum symbol_use use)
{
    CUdeviceptr address = 0;

    symbol_call_begins(use);
    assert_int_equal(symbol_give(symbol, &address), CUDA_SUCCESS);
    return address;
}

static void check_copy(enum symbol_use use, uint64_t dst, uint64_t src, uint64_t expected_dst,
                       uint64_t expected_src)
{
    symbol_call_begins(use);
    if (symbol_copy_begin(&dst, &src, false))
        symbol_copy_end();
    symbol_call_ends(NULL);
    assert_int_equal(dst, expected_dst);
    assert_int_equal(src, expected_src);
}

static int setup(void **state)
{
    int r = fixture_setup(state);

    variables_init();
    symbols_init();
    return r;
}

static void test_copies_follow_a_move(void **state)
{
    struct symbol *symbol = enter(FIRST, CUDA_SUCCESS);

    assert_int_equal(given(symbol, SYMBOL_COPIED_TO), FIRST);
    check_copy(SYMBOL_COPIED_TO, FIRST + 4, OTHER, FIRST + 4, OTHER);
    symbol_move(symbol, SECOND);
    assert_int_equal(given(symbol, SYMBOL_COPIED_FROM), FIRST);
    check_copy(SYMBOL_COPIED_TO, FIRST + 4, OTHER, SECOND + 4, OTHER);
    check_copy(SYMBOL_COPIED_FROM, OTHER, FIRST + SIZE - 1, OTHER, SECOND + SIZE - 1);
    assert_int_equal(symbols_obstacle(true), OBSTACLE_NONE);
    assert_int_equal(symbols_obstacle(false), OBSTACLE_ASKED);
}

/* The same number may be an address of the new server. */
static void test_only_the_variable_of_the_call_is_corrected(void **state)
{
    struct symbol *symbol = enter(FIRST, CUDA_SUCCESS);

    symbol_move(symbol, SECOND);
    check_copy(SYMBOL_NOT_USED, FIRST, FIRST, FIRST, FIRST);
    check_copy(SYMBOL_COPIED_TO, FIRST, FIRST, SECOND, FIRST);
    check_copy(SYMBOL_COPIED_FROM, FIRST, FIRST, FIRST, SECOND);
    check_copy(SYMBOL_COPIED_TO, FIRST + SIZE, OTHER, FIRST + SIZE, OTHER);
}

static void test_an_address_that_the_program_sees_is_the_present_one(void **state)
{
    struct symbol *symbol = enter(FIRST, CUDA_SUCCESS), *second = enter(SECOND, CUDA_SUCCESS);
    uint64_t address = FIRST;

    symbol_move(symbol, THIRD);
    symbol_call_begins(SYMBOL_SEEN);
    symbol_call_ends(&address);
    assert_int_equal(address, THIRD);
    assert_true(symbol->seen);
    assert_int_equal(symbols_obstacle(true), OBSTACLE_ASKED);
    address = given(second, SYMBOL_SEEN);
    symbol_call_ends(&address);
    assert_int_equal(address, SECOND);
    assert_int_equal(given(symbol, SYMBOL_NOT_USED), THIRD);
}

/* Neither an error nor another variable's contents. */
static void test_an_ambiguous_address_is_refused(void **state)
{
    struct symbol *symbol = enter(FIRST, CUDA_SUCCESS), *second = enter(SECOND, CUDA_SUCCESS);
    CUdeviceptr address;

    symbol_move(symbol, THIRD);
    symbol_move(second, FIRST + 8);
    check_copy(SYMBOL_COPIED_TO, FIRST + 8, OTHER, THIRD + 8, OTHER);
    check_copy(SYMBOL_COPIED_TO, SECOND, OTHER, FIRST + 8, OTHER);
    symbol_call_begins(SYMBOL_SEEN);
    assert_int_equal(symbol_give(second, &address), CUDA_ERROR_NOT_SUPPORTED);
    symbol_call_ends(NULL);
    free(enter(SECOND - 8, CUDA_ERROR_NOT_SUPPORTED));
    assert_int_equal(given(second, SYMBOL_NOT_USED), FIRST + 8);
}

static void test_graphs_keep_addresses(void **state)
{
    struct symbol *symbol = enter(FIRST, CUDA_SUCCESS);
    uint64_t dst = FIRST, src = OTHER;

    symbol_call_begins(SYMBOL_COPIED_TO);
    assert_true(symbol_copy_begin(&dst, &src, true));
    assert_true(symbol->seen);
    symbol_copy_end();
    symbol->seen = false;
    symbol_move(symbol, SECOND);
    assert_false(symbol_node_is_stale(FIRST, OTHER));
    symbol_call_begins(SYMBOL_PUT_IN_GRAPH);
    assert_true(symbol->seen);
    assert_true(symbol_node_is_stale(FIRST, OTHER));
    assert_true(symbol_node_is_stale(OTHER, FIRST + 8));
    assert_false(symbol_node_is_stale(SECOND, OTHER));
    symbol_call_ends(NULL);
}

static void test_no_move_in_the_middle_of_a_copy(void **state)
{
    uint64_t dst = FIRST, src = OTHER, word = FIRST + SIZE;
    unsigned char messages[32] = {0};

    enter(FIRST, CUDA_SUCCESS);
    symbol_call_begins(SYMBOL_COPIED_TO);
    assert_true(symbol_copy_begin(&dst, &src, false));
    assert_int_equal(symbols_obstacle(true), OBSTACLE_CALL);
    symbol_copy_end();
    assert_int_equal(symbols_obstacle(true), OBSTACLE_NONE);
    assert_false(symbols_occur(messages, sizeof(messages)));
    memcpy(messages + 3, &word, sizeof(word));
    assert_true(symbols_occur(messages, sizeof(messages)));
    assert_false(symbols_occur(messages, 10));
}

static void test_a_removed_symbol_is_free(void **state)
{
    struct symbol *symbol = enter(FIRST, CUDA_SUCCESS);

    symbol_move(symbol, SECOND);
    symbol_remove(symbol);
    check_copy(SYMBOL_COPIED_TO, FIRST, OTHER, FIRST, OTHER);
    enter(FIRST, CUDA_SUCCESS);
    assert_int_equal(address_map_place(SECOND, 4), PLACE_PAGEABLE);
    assert_int_equal(address_map_place(FIRST, 4), PLACE_DEVICE);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_copies_follow_a_move),
        CASE(test_only_the_variable_of_the_call_is_corrected),
        CASE(test_an_address_that_the_program_sees_is_the_present_one),
        CASE(test_an_ambiguous_address_is_refused),
        CASE(test_graphs_keep_addresses),
        CASE(test_no_move_in_the_middle_of_a_copy),
        CASE(test_a_removed_symbol_is_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
