/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txq and suq: questions about objects. Those whose answers are numbers of a language's
 * enumerations are not carried.
 */
#pragma once

#include "decode.h"

void decode_tex_query(struct builder *builder, const struct tokens *tokens);
