/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks of a kernel one multiprocessor takes. */
#pragma once

#include "client_library.h"

/* By the driver, which is asked once. The bound on the program's own dynamic shared memory does not
 * count here. */
CUresult occupancy_blocks(struct function *function, const struct occupancy_question *question,
                          int *ret_blocks);
