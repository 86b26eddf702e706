/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by cp, of every form: async, bulk and tensor. */
#pragma once

#include "decode.h"

void decode_cp(struct builder *builder, const struct tokens *tokens);
