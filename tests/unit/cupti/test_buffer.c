/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "cupti_buffer.h"
#include "cupti_functions.h"

#define SPACE_OF_TWO (2 * sizeof(struct cupti_call) + 8)

static _Alignas(8) uint8_t buffers[4][SPACE_OF_TWO];
static unsigned requested, completed;
static size_t valid[4];
static size_t records_max;
static bool refuses;

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = refuses ? NULL : buffers[requested++];
    *size = refuses ? 0 : SPACE_OF_TWO;
    *max_records = records_max;
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                     size_t valid_size)
{
    assert_ptr_equal(buffer, buffers[completed]);
    assert_int_equal(size, SPACE_OF_TWO);
    valid[completed++] = valid_size;
}

static int begin(void **state)
{
    requested = completed = 0;
    records_max = 0;
    refuses = false;
    assert_int_equal(cuptiActivityRegisterCallbacks(request, complete), CUPTI_SUCCESS);
    return 0;
}

static void append_calls(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct cupti_call call = {.kind = CUPTI_KIND_DRIVER, .cbid = i + 1};
        cupti_buffer_append(&call);
    }
}

static void records_go_into_the_next_buffer(void **state)
{
    append_calls(3);
    assert_int_equal(requested, 2);
    cupti_buffer_deliver_due();
    assert_int_equal(completed, 1);
    assert_int_equal(valid[0], 2 * sizeof(struct cupti_call));
    cupti_buffer_deliver_all();
    assert_int_equal(completed, 2);
    assert_int_equal(valid[1], sizeof(struct cupti_call));
    cupti_buffer_deliver_all();
    assert_int_equal(completed, 2);
}

static void the_program_limits_records(void **state)
{
    records_max = 1;
    append_calls(2);
    cupti_buffer_deliver_all();
    assert_int_equal(completed, 2);
    assert_int_equal(valid[0], sizeof(struct cupti_call));
}

static void without_a_buffer_records_are_dropped(void **state)
{
    refuses = true;
    append_calls(5);
    assert_int_equal(cupti_buffer_take_dropped(), 5);
    assert_int_equal(cupti_buffer_take_dropped(), 0);
}

static void a_buffer_is_walked(void **state)
{
    void *record = NULL;

    append_calls(2);
    cupti_buffer_deliver_all();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(cuptiActivityGetNextRecord(buffers[0], valid[0], &record), CUPTI_SUCCESS);
        assert_int_equal(((struct cupti_call *)record)->cbid, i + 1);
    }
    assert_int_equal(cuptiActivityGetNextRecord(buffers[0], valid[0], &record),
                     CUPTI_ERROR_MAX_LIMIT_REACHED);
    record = NULL;
    assert_int_equal(cuptiActivityGetNextRecord(buffers[0], 0, &record),
                     CUPTI_ERROR_MAX_LIMIT_REACHED);
    assert_int_equal(cuptiActivityGetNextRecord(NULL, 8, &record), CUPTI_ERROR_INVALID_PARAMETER);
    buffers[0][0] = 0xee;
    assert_int_equal(cuptiActivityGetNextRecord(buffers[0], valid[0], &record),
                     CUPTI_ERROR_INVALID_KIND);
}

/* Without a driver of Funnel's in the process nothing can be recorded. */
static void without_funnel_nothing_is_enabled(void **state)
{
    assert_int_equal(cuptiActivityEnable(CUPTI_KIND_KERNEL), CUPTI_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuptiActivityEnable(6), CUPTI_ERROR_INVALID_KIND);
    assert_int_equal(cuptiActivityEnable(1000), CUPTI_ERROR_INVALID_KIND);
    assert_int_equal(cuptiFinalize(), CUPTI_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(records_go_into_the_next_buffer, begin),
        cmocka_unit_test_setup(the_program_limits_records, begin),
        cmocka_unit_test_setup(without_a_buffer_records_are_dropped, begin),
        cmocka_unit_test_setup(a_buffer_is_walked, begin),
        cmocka_unit_test(without_funnel_nothing_is_enabled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
