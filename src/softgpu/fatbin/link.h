/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links the PTX of separately compiled sources (nvcc -rdc=true) into one text.
 */
#pragma once

#include "fatbin.h"

/*
 * Names that a part keeps to itself get the part's number. Weak definitions of several parts stay
 * once. Declarations make way for the definition of another part. The PTX of CUDA's device runtime
 * is left out. 0, or -ENOMEM.
 */
int fatbin_link(const struct fatbin_code *code, struct fatbin_part *ret_part);

/* A container with this PTX as its one entry, plain and for sm_`sm`, for the caller to free.
 * Returns 0, or -ENOMEM. Both fatbin_read() and fatbin_read_container() take it. */
int fatbin_write_container(const struct fatbin_part *part, unsigned sm, void **ret_bytes,
                           size_t *ret_size);
