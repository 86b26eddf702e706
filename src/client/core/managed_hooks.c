/* SPDX-License-Identifier: Apache-2.0 */
/* Filled by managed_init(). */
#include "managed_hooks.h"

struct managed_hooks managed_hooks;
_Atomic uint32_t managed_in_use;
