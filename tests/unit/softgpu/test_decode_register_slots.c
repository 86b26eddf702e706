/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which registers lie in one place: results that are used up between two labels, and no others.
 */
#include "register_slots.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

#define HEAD                                                                                 \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                                        \
    ".visible .entry k(.param .u64 p)\n{\n.reg .u32 %a, %b, %c, %d, %e;\n.reg .u64 %x, %y, " \
    "%z;\n.reg .pred %q;\n.reg .b128 %w, %v;\n"

struct place {
    struct ptx_module *module;
    struct register_slots slots;
};

static void find_slots(struct place *place, const char *body)
{
    static char text[2048];
    struct ptx_error error;

    snprintf(text, sizeof(text), "%s%s\nret;\n}\n", HEAD, body);
    place->module = ptx_parse(text, strlen(text), &error);
    assert_non_null(place->module);
    assert_true(register_slots_init(&place->slots, place->module->functions[0]));
}

static void forget(struct place *place)
{
    register_slots_fini(&place->slots);
    ptx_module_destroy(place->module);
}

static uint32_t slot_of(const struct place *place, const char *name)
{
    const struct ptx_function *function = place->module->functions[0];

    for (uint32_t i = 0; i < function->register_count; i++)
        if (strcmp(function->registers[i].name, name) == 0)
            return place->slots.slot[i];
    fail_msg("there is no %s", name);
    return 0;
}

/* How many slots of 64, of 32 bits and of predicates the registers take together. */
static void check_counts(const char *body, uint32_t wide, uint32_t narrow, uint32_t predicates)
{
    struct place place;

    find_slots(&place, body);
    assert_int_equal(place.slots.counts[0], wide);
    assert_int_equal(place.slots.counts[1], narrow);
    assert_int_equal(place.slots.counts[2], predicates);
    forget(&place);
}

static void results_that_are_used_up_share(void **state)
{
    struct place place;

    (void)state;
    find_slots(&place, "mov.u32 %a, %tid.x;\nadd.u32 %b, %a, 1;\nadd.u32 %c, %b, 1;\n"
                       "add.u32 %d, %c, 1;\nst.global.u32 [%x], %d;");
    assert_int_equal(place.slots.counts[1], 2);
    assert_int_equal(slot_of(&place, "%a"), slot_of(&place, "%c"));
    assert_int_equal(slot_of(&place, "%b"), slot_of(&place, "%d"));
    assert_int_not_equal(slot_of(&place, "%a"), slot_of(&place, "%b"));
    forget(&place);
}

static void a_result_is_not_over_its_sources(void **state)
{
    struct place place;

    (void)state;
    find_slots(&place, "mov.u32 %a, 1;\nmov.u32 %b, 2;\nadd.u32 %c, %a, %b;\n"
                       "st.global.u32 [%x], %c;");
    assert_int_not_equal(slot_of(&place, "%c"), slot_of(&place, "%a"));
    assert_int_not_equal(slot_of(&place, "%c"), slot_of(&place, "%b"));
    forget(&place);
}

static void a_register_that_is_used_longer_keeps_its_place(void **state)
{
    struct place place;

    (void)state;
    find_slots(&place, "mov.u32 %a, 1;\nmov.u32 %b, 2;\nst.global.u32 [%x], %b;\n"
                       "mov.u32 %c, 3;\nadd.u32 %d, %a, %c;\nst.global.u32 [%x], %d;");
    assert_int_not_equal(slot_of(&place, "%c"), slot_of(&place, "%a"));
    assert_int_equal(slot_of(&place, "%c"), slot_of(&place, "%b"));
    forget(&place);
}

#define LOOP(body) "again:\n" body "\n@%q bra again;"

/* Each of them has a value from the time before, or from elsewhere. */
static void a_register_that_comes_from_elsewhere_does_not_share(void **state)
{
    (void)state;
    check_counts(LOOP("add.u32 %a, %a, 1;\nmov.u32 %b, 1;\nst.global.u32 [%x], %b;"), 1, 2, 1);
    check_counts(LOOP("@%q mov.u32 %a, 1;\nst.global.u32 [%x], %a;\nmov.u32 %b, 1;\n"
                      "st.global.u32 [%x], %b;"),
                 1, 2, 1);
    check_counts("mov.u32 %a, 1;\n" LOOP("st.global.u32 [%x], %a;\nmov.u32 %b, 1;\n"
                                         "st.global.u32 [%x], %b;"),
                 1, 2, 1);
    check_counts(
        LOOP("mov.u32 %b, 1;\nst.global.u32 [%x], %b;\nmov.u32 %a, 1;") "\nst.global.u32 [%x], "
                                                                        "%a;\nagain2:\n@%q bra "
                                                                        "again2;\nst.global.u32 "
                                                                        "[%x], %a;",
        1, 2, 1);
}

/* A label that is only there, or a branch away, changes nothing. */
static void branches_away_do_not_matter(void **state)
{
    (void)state;
    check_counts("mov.u32 %a, 1;\n@%q bra end;\nnowhere:\nst.global.u32 [%x], %a;\n"
                 "mov.u32 %b, 1;\nst.global.u32 [%x], %b;\nend:",
                 1, 1, 1);
}

static void targets_of_tables_count(void **state)
{
    (void)state;
    check_counts("table: .branchtargets one, two;\nmov.u32 %a, 1;\nbrx.idx %c, table;\none:\n"
                 "st.global.u32 [%x], %a;\nmov.u32 %b, 1;\nst.global.u32 [%x], %b;\ntwo:",
                 1, 3, 0);
}

static void parameters_and_pairs_of_words_have_their_own(void **state)
{
    (void)state;
    check_counts("ld.param.u64 %x, [p];\nst.global.u32 [%x], 1;\nmov.u64 %y, 1;\n"
                 "st.global.u64 [%y], %y;\nmov.u64 %z, 1;\nst.global.u64 [%z], %z;",
                 2, 0, 0);
    check_counts("mov.b128 %w, {%x, %y};\nmov.b128 {%x, %y}, %w;\nmov.b128 %v, {%x, %y};", 6, 0, 0);
}

static void loaded_vectors_share(void **state)
{
    (void)state;
    check_counts("ld.global.v2.u32 {%a, %b}, [%x];\nst.global.v2.u32 [%x], {%a, %b};\n"
                 "ld.global.v2.u32 {%c, %d}, [%x];\nst.global.v2.u32 [%x], {%c, %d};",
                 1, 2, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_that_are_used_up_share),
        cmocka_unit_test(a_result_is_not_over_its_sources),
        cmocka_unit_test(a_register_that_is_used_longer_keeps_its_place),
        cmocka_unit_test(a_register_that_comes_from_elsewhere_does_not_share),
        cmocka_unit_test(branches_away_do_not_matter),
        cmocka_unit_test(targets_of_tables_count),
        cmocka_unit_test(parameters_and_pairs_of_words_have_their_own),
        cmocka_unit_test(loaded_vectors_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
