/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locking memory for the GPU.
 */
#pragma once

#include <stddef.h>

#include "loader.h"

/* Locks [address, address + size) and makes the GPU see it at the same address. */
CUresult page_lock(void *address, size_t size);

/* Undoes it. Stalls every client until the GPU is idle. */
void page_unlock(void *address);
