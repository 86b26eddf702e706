/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How servers share the time of a GPU. Kernels of two servers do not overlap: the GPU runs those of
 * one for a slice of time, then those of the other. Operators give named servers a percentage
 * (`server set NAME --timeslice-pct`, `timeslice_pct` in the configuration file), and the slices
 * are such that servers which always have work get these shares. A server that rests leaves its
 * time to the others.
 */
#pragma once

#include <stdint.h>

struct daemon;

/* What all slices together take, when every server has work. The driver's own slice is about 2 ms.
 */
#define TIMESLICE_PERIOD_US 10000u

/* The slice of a server with that percentage, or, with 0, of one of `others` that share what the
 * percentages leave. `given` is the sum of all percentages; when it is 0 the driver's own slices
 * stay, for which the result is 0. Microseconds. */
uint64_t timeslice_of(uint32_t percent, uint32_t given, unsigned others);

/* Servers have come or gone, or a percentage has changed: tells each server its slice, where that
 * is another than before. */
void timeslices_divide(struct daemon *daemon);
