/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs that a program waits for another's long kernels, in what both have used between two
 * reports. A server reports earlier where it sees them, and the daemon decides by them who moves
 * (src/funneld/servers/lane_watch.h).
 */
#pragma once

#include "clock.h"

/* Kernels of less time in all say little about an average. */
#define LANE_BUSY_NS (50 * NS_PER_MS)

/* Kernels of this length are long. With kernels of 50 us two lanes make a fourth of the launches of
 * one lane, and with kernels of 2 ms more than one (docs/design/lanes.md). */
#define LANE_LONG_NS (2 * NS_PER_MS)

/* A program that waits shares at least so much of its time with kernels of others. */
#define LANE_SHARED_PERCENT 50u
