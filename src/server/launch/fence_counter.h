/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words in the GPU's memory in which the fence kernel remembers the number that it wrote last. As
 * numbers mostly follow each other, it can count on by itself, and its node in a graph need not be
 * told each of them: that would be a call of the driver.
 */
#pragma once

#include <pthread.h>

#include "driver_table.h"

struct fence_counters;

/* The context of their device is current. NULL: there is no memory, and each number is told. */
struct fence_counters *fence_counters_create(void);

/* NULL is allowed. */
void fence_counters_destroy(struct fence_counters *fence_counters);

/* The address of a word that nobody else uses, or 0. From any thread; NULL is allowed. */
CUdeviceptr fence_counters_take(struct fence_counters *fence_counters);

/* 0 is allowed. */
void fence_counters_put_back(struct fence_counters *fence_counters, CUdeviceptr fence_counter);
