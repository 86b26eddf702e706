/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device.h"

/* The NUMA node that is nearest to the device. */
static inline int host_node(const struct device *device)
{
    const int node = device->record.attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID];

    return node < 0 ? 0 : node;
}
