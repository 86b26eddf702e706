/* SPDX-License-Identifier: Apache-2.0 */
/* Switches in the environment: on when they are set to anything but 0 or nothing. */
#pragma once

#include <stdbool.h>

bool switch_is_on(const char *name);

/* As switch_is_on(), for what is asked again and again. It reads the environment the first time
 * only, as other threads of a program may be writing it. `known` is the caller's, static and 0 at
 * first.
 */
bool switch_is_on_once(_Atomic int *known, const char *name);
