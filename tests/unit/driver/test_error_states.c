/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls of the driver library the server answers itself. */
#include "error_states.h"

#include "rm_call.h"
#include "unit.h"

#define CLEAR_ALL 0x83de0310u
#define READ_ALL 0x83de030cu
#define FAILED 0x56u

static struct rm_control control;

static bool answers(unsigned number, uint32_t command)
{
    const unsigned long request =
        3ul << 30 | sizeof(control) << 16 | (unsigned long)RM_MAGIC << 8 | number;

    control = (struct rm_control){.command = command, .status = FAILED};
    return error_states_answer(request, &control);
}

static void states_stay_after_a_fault(void **state)
{
    assert_true(answers(RM_CONTROL, CLEAR_ALL));
    assert_int_equal(control.status, 0);
}

static void all_other_calls_are_made(void **state)
{
    assert_false(answers(RM_CONTROL, READ_ALL));
    assert_int_equal(control.status, FAILED);
    assert_false(answers(RM_ALLOC, CLEAR_ALL));
    assert_false(answers(RM_FREE, CLEAR_ALL));
    assert_int_equal(control.status, FAILED);
    assert_false(error_states_answer(0x5401, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_stay_after_a_fault),
        cmocka_unit_test(all_other_calls_are_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
