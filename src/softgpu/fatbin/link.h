/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links the PTX of separately compiled sources (nvcc -rdc=true) into one text.
 */
#pragma once

#include "fatbin.h"

/*
 * Names that a part keeps to itself get the part's number; what several parts define weakly stays
 * once; declarations of what another part defines make way for the definition. 0, or -ENOMEM.
 */
int fatbin_link(const struct fatbin_code *code, struct fatbin_part *ret_part);
