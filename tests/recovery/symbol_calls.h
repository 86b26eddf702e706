/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the runtime with variables, made as libcudart makes them: it tells the hooks of the
 * driver about the call, and keeps addresses. libcudart 12 asks once for each variable, and
 * libcudart 13 before each copy. ASKS_AGAIN=1 does the latter.
 */
#pragma once

#include <stddef.h>

#include "cuda_abi.h"

/* `stream` may be NULL: then the copy is synchronous. */
CUresult symbol_copy_to(CUmodule module, const char *name, const void *from, size_t size,
                        CUstream stream);
CUresult symbol_copy_from(void *to, CUmodule module, const char *name, size_t size);
CUresult symbol_address(CUdeviceptr *ret_address, CUmodule module, const char *name);

/* The modules have ended. */
void symbols_forget(void);
