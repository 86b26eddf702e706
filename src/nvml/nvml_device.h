/* SPDX-License-Identifier: Apache-2.0 */
/* Which device of the daemon's servers a handle of NVML's is. */
#pragma once

#include <stdbool.h>

#include "nvml_abi.h"
#include "nvml_facts.h"

/* The facts (nvml_facts.h) and the UUID of a device that servers serve; NULL for another device, or
 * without facts. Ended by facts_end(). */
const struct facts *device_facts(nvml_device device, bool needs_rates, uint8_t ret_uuid[16]);
