/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's numbers of calls ("cbid"). From any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Data: see driver_names.c and runtime_names.c. The sizes are bytes. */
extern const char cupti_driver_names[], cupti_runtime_names[];
extern const unsigned cupti_driver_names_size, cupti_runtime_names_size;

/* The number of a driver call by the name of its symbol; 0 when CUPTI has none. */
uint32_t cupti_driver_cbid(const char *name);

/* The name of a call by its number; NULL when there is none. */
const char *cupti_call_name(bool of_runtime, uint32_t cbid);
