/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes let each other have, by the 64 bytes of CUDA's handles. The functions need
 * soft_lock. */
#pragma once

#include "soft_memory.h"
