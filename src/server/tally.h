/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words in the GPU's memory in which the fence kernel remembers the number that it wrote last. As
 * numbers mostly follow each other, it can count on by itself, and its node in a graph need not be
 * told each of them: that would be a call of the driver.
 */
#pragma once

#include <pthread.h>

#include "driver_table.h"

struct tallies;

/* The context of their device is current. NULL: there is no memory, and each number is told. */
struct tallies *tallies_create(void);

/* NULL is allowed. */
void tallies_destroy(struct tallies *tallies);

/* The address of a word that nobody else uses, or 0. From any thread; NULL is allowed. */
CUdeviceptr tallies_take(struct tallies *tallies);

/* 0 is allowed. */
void tallies_put_back(struct tallies *tallies, CUdeviceptr tally);
