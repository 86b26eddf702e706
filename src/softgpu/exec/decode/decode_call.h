/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: arguments and results move between frames; some functions are the software GPU's own.
 */
#pragma once

#include "decode.h"

void decode_call(struct builder *builder, const struct tokens *tokens);
