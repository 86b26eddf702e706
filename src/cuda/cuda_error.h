/* SPDX-License-Identifier: Apache-2.0 */
/* Names, descriptions and consequences of CUresult. The texts are constant; any thread
 * may ask. */
#pragma once

#include <stdbool.h>

#include "cuda_result.h"

/* "CUDA_ERROR_INVALID_VALUE"; NULL for a number that is none. */
const char *cuda_error_name(CUresult result);

/* "invalid argument"; NULL for a number that is none. */
const char *cuda_error_string(CUresult result);

/* Whether the error ends the context: every later call on it reports the same. */
bool cuda_error_is_fatal(CUresult result);

/* Whether the error is an answer to a question, which well-behaved programs get all the time from
 * that call. */
bool cuda_error_is_expected(const char *call, CUresult result);
