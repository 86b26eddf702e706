/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all clients together may page-lock. Nothing is locked here: the sizes are only counted.
 */
#include "host_memory.h"

#include <unistd.h>

#include "fake_driver.h"
#include "page_lock.h"
#include "quota.h"
#include "window.h"

#define GRANULE (2ull << 20)

/* No client's own quota is in the way. */
static int setup(void **state)
{
    return fixture_setup(state) || server_quotas_init("host-memory=1048576G") ? -1 : 0;
}

static uint64_t machine_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void a_quarter_of_the_machine_is_left(void **state)
{
    const struct fixture *fixture = *state;
    uint64_t most = machine_memory() / 4 * 3;

    assert_false(host_memory_charge(fixture->session, most + GRANULE));
    assert_true(host_memory_charge(fixture->session, most));
    assert_false(host_memory_charge(fixture->session, GRANULE));
    host_memory_refund(fixture->session, GRANULE);
    assert_true(host_memory_charge(fixture->session, GRANULE));
    host_memory_refund(fixture->session, most);
}

static void others_have_what_one_client_leaves(void **state)
{
    const struct fixture *fixture = *state;
    struct session *session = fixture->session;
    struct window own = *session->window, *first = session->window;
    uint64_t most = machine_memory() / 4 * 3;

    assert_true(host_memory_charge(session, most - GRANULE));
    session->window = &own;
    own.host_bytes = 0;
    assert_false(host_memory_charge(session, 2 * GRANULE));
    assert_true(host_memory_charge(session, GRANULE));
    assert_int_equal(own.host_bytes, GRANULE);
    host_memory_refund(session, GRANULE);
    session->window = first;
    host_memory_refund(session, most - GRANULE);
    assert_int_equal(atomic_load(&first->page_locker->host_bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_quarter_of_the_machine_is_left, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(others_have_what_one_client_leaves, setup,
                                        fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
