/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs this process may use, which a container may limit. */
#pragma once

unsigned cpus_available(void);
