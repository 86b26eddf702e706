/* SPDX-License-Identifier: Apache-2.0 */
/* What the sections of machine code hold, by their names. */
#pragma once

#include <stdbool.h>

/* Whether a section of this name has no variables: code, what the driver must know of it, its
 * parameters and the compiler's own constants, debug information. */
bool image_section_is_harmless(const char *name);
