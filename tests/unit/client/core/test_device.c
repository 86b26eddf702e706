/* SPDX-License-Identifier: Apache-2.0 */
/* What a client knows of its devices. */
#include "client_device.h"

#include "client_core_fixture.h"

/* A program would take 0 for an answer. */
static void an_older_driver_knows_fewer_attributes(void **state)
{
    const struct device *device = &client->devices[0];

    core_fixture.record.attributes_known[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 1;
    assert_true(device_has_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE));
    assert_false(device_has_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE + 1));
    assert_false(device_has_attribute(device, 0));
    assert_false(device_has_attribute(device, DEVICE_ATTRIBUTES_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_CASE(an_older_driver_knows_fewer_attributes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
