/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a call of the driver for a profiler. The generated entry points give the tracer
 * a format of NAME=%FORM, separated by spaces, and the values.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

#define CLIENT_ARGUMENTS_SIZE 256u /* bytes; no call has more */

struct client_arguments {
    /* A struct of them in their order, as generated_cuda_meta.h of the CUDA toolkit has it. */
    _Alignas(uint64_t) unsigned char bytes[CLIENT_ARGUMENTS_SIZE];
    size_t size;
    bool is_partial;     /* one is a struct, whose value the tracer is not told */
    CUstream stream;     /* the parameter hStream, or NULL */
    CUevent event;       /* the parameter hEvent, or NULL */
    CUfunction function; /* the parameter f of a launch, or NULL */
};

/* Packs the parameters of a call as a format of the call's trace names them. `given` stays usable.
 */
void client_arguments_pack(struct client_arguments *arguments, const char *format, va_list given);
