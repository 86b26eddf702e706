/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses between state spaces: cvta, and isspacep, which asks for the space of one. */
#pragma once

#include "decode.h"

void decode_cvta(struct builder *builder, const struct tokens *tokens);
void decode_isspacep(struct builder *builder, const struct tokens *tokens);
