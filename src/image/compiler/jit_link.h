/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's nvJitLink library, which compiles PTX without a GPU or a driver. It comes with the CUDA
 * toolkit, and with PyTorch's packages (nvidia-nvjitlink). Its API is documented at
 * https://docs.nvidia.com/cuda/nvjitlink/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct jit_link_options {
    unsigned sm;            /* of the device, such as 90 */
    unsigned max_registers; /* of a thread; 0 = as many as the code needs */
    unsigned optimization;  /* 0 to 3 */
    bool debug_info, line_info;
};

/* Loads the library, once and before the first compilation: 0; -ENOENT, with the reason. */
int jit_link_open(const char *path, char *why, size_t why_size);

/* Compiles PTX, which ends with a NUL. The caller frees code and log; both may be NULL. Returns 0
 * or -ENOMEM. -EINVAL: an error in the PTX, which the log names. -EPROTONOSUPPORT: the library does
 * not know that PTX version. */
int jit_link_compile(const char *ptx, const struct jit_link_options *options, void **ret_code,
                     size_t *ret_size, char **ret_log);
