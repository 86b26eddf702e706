/* SPDX-License-Identifier: Apache-2.0 */
/* Zeroes for new arrays. Session thread. */
#pragma once

#include "array.h"

/* Fills an array, or a level of one with mipmaps, with zeroes. The driver reuses memory inside a
 * process as it is, and the process is the same for all clients. */
CUresult array_clear(const struct array *array);
