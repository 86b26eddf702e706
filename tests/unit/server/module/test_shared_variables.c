/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries with variables: who shares them, and what the next client finds in them. */
#include <string.h>

#include "image_facts.h"
#include "module_cases.h"

static void variables_have_one_client_at_a_time(void **state)
{
    struct cached *first = case_get(*state, VARIABLE), *second = case_get(*state, VARIABLE);

    assert_ptr_not_equal(first, second);
    assert_true(cached_is_shared(first));
    assert_string_equal(fake_trace(), "load l1; load l2; ");
    module_cache_put(case_cache(*state), second);
    module_cache_put(case_cache(*state), first);
    assert_ptr_equal(case_get(*state, VARIABLE), second);
    assert_ptr_equal(case_get(*state, VARIABLE), first);
    assert_string_equal(fake_trace(), "");
    module_cache_put(case_cache(*state), second);
    module_cache_put(case_cache(*state), first);
}

/* No kernel case_writes to them, so they are neither recorded nor restored. */
static void variables_of_compilers_are_for_all(void **state)
{
    const char *text = PTX ".global .align 1 .b8 $str[3] = {104, 105};\n"
                           ".global .align 1 .b8 _ZN8INTERNAL4cuda3std3__45__cpo3endE[1];\n" ENTRY;
    struct cached *first = case_get(*state, text), *second = case_get(*state, text);

    case_have_a_counter();
    assert_ptr_equal(first, second);
    assert_false(cached_has_variables(first));
    assert_false(cached_has_state(first));
    case_query(*state, first);
    module_cache_put(case_cache(*state), first);
    module_cache_put(case_cache(*state), second);
    assert_int_equal(case_writes, 0);
    assert_string_equal(fake_trace(), "load l1; ");
    first = case_get(*state, VARIABLE);
    assert_true(cached_has_variables(first));
    module_cache_put(case_cache(*state), first);
}

static void the_next_client_finds_what_the_first_found(void **state)
{
    struct cached *cached = case_get(*state, VARIABLE);

    case_have_a_counter();
    case_query(*state, cached);
    case_counter = 7;
    case_query(*state, cached);
    assert_int_equal(case_writes, 0);
    module_cache_put(case_cache(*state), cached);
    assert_int_equal(case_counter, 5);
    case_counter = 9; /* not by a client */
    assert_ptr_equal(case_get(*state, VARIABLE), cached);
    case_query(*state, cached);
    module_cache_put(case_cache(*state), cached);
    assert_int_equal(case_counter, 5);
    assert_int_equal(case_writes, 2);
}

static void some_copies_stay_when_no_client_is_left(void **state)
{
    struct fixture *fixture = *state;
    struct module_cache *cache = case_cache(fixture);
    struct cached *copies[MODULE_CACHE_COPIES_KEPT + 2], *shared = case_get(fixture, PLAIN);

    case_have_a_counter();
    for (unsigned i = 0; i < MODULE_CACHE_COPIES_KEPT + 2; i++)
        copies[i] = case_get(fixture, VARIABLE);
    for (unsigned i = 0; i < MODULE_CACHE_COPIES_KEPT + 1; i++)
        module_cache_put(cache, copies[i]);
    module_cache_put(cache, shared);
    fake_trace();
    module_cache_trim(cache, NULL); /* another device's */
    assert_string_equal(fake_trace(), "");
    module_cache_trim(cache, &fixture->server.devices.device[0]);
    assert_string_equal(case_unload(cache), "unload l2; ");
    assert_ptr_equal(case_get(fixture, VARIABLE), copies[1]);
    assert_ptr_equal(case_get(fixture, PLAIN), shared);
    module_cache_put(cache, copies[1]);
    module_cache_put(cache, copies[MODULE_CACHE_COPIES_KEPT + 1]);
    module_cache_put(cache, shared);
}

static void libraries_whose_variables_are_not_found_are_not_shared(void **state)
{
    const char *text = PTX ".visible .global .align 4 .u32 other;\n" ENTRY;
    struct cached *cached = case_get(*state, text);

    case_have_a_counter();
    case_query(*state, cached);
    assert_false(cached_is_shared(cached));
    fake_trace();
    module_cache_put(case_cache(*state), cached);
    assert_string_equal(case_unload(case_cache(*state)), "unload l1; ");
}

static CUresult fail_to_copy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void libraries_that_cannot_be_restored_are_dropped(void **state)
{
    struct cached *cached = case_get(*state, VARIABLE);

    case_have_a_counter();
    case_query(*state, cached);
    driver.cuMemcpyAsync = fail_to_copy;
    module_cache_put(case_cache(*state), cached);
    cached = case_get(*state, VARIABLE);
    assert_non_null(strstr(fake_trace(), "load l2; "));
    module_cache_put(case_cache(*state), cached);
}

static bool has_variables(const char *text)
{
    struct image_facts facts;

    image_facts_read(text, strlen(text), 90, &facts);
    image_facts_fini(&facts);
    return facts.has_variables;
}

static void variables_are_found(void **state)
{
    (void)state;
    assert_false(has_variables(PLAIN));
    assert_true(has_variables(VARIABLE));
    assert_true(has_variables(PTX ".const .align 4 .u32 table[2];\n" ENTRY));
    assert_true(has_variables(PTX ".global .texref t;\n" ENTRY));
    assert_false(has_variables(PTX ".visible .entry k()\n{\nld.const.u32 %r1, [a];\n}\n"));
    assert_true(has_variables("\177ELF cut"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODULE_CASE(variables_have_one_client_at_a_time),
        MODULE_CASE(variables_of_compilers_are_for_all),
        MODULE_CASE(the_next_client_finds_what_the_first_found),
        MODULE_CASE(some_copies_stay_when_no_client_is_left),
        MODULE_CASE(libraries_whose_variables_are_not_found_are_not_shared),
        MODULE_CASE(libraries_that_cannot_be_restored_are_dropped),
        MODULE_CASE(variables_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
