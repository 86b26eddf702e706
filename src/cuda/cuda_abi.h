/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary interface of the CUDA driver API 13.0, declared by ourselves so that building needs no
 * CUDA toolkit. Names and numbers are those of the documented API; where the toolkit is installed,
 * tests/apigen compares every one of them with its cuda.h.
 *
 * Prototypes of the entry points are generated from api/ (cuda_prototypes.h).
 */
#pragma once

#define CUDA_VERSION 13000
#define CUDAAPI
#define CUDA_CB

#include "cuda_graph.h"
#include "cuda_structs.h"
