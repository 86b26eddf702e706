/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of machine code sections, by their names. */
#pragma once

#include <stdbool.h>

/* Whether a section of this name has no variables: code and its metadata, parameters, the
 * compiler's constants, debug information. */
bool image_section_is_harmless(const char *name);
