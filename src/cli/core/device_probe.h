/* SPDX-License-Identifier: Apache-2.0 */
/* Whether NVIDIA's driver works on this machine. */
#pragma once

#include <stdbool.h>

/* Loads the driver library in a process of its own, because a driver that is loaded stays loaded.
 */
bool device_probe_cuda(void);
