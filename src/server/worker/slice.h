/* SPDX-License-Identifier: Apache-2.0 */
/* The slice of the CPU's time that the kernel gives to a thread. */
#pragma once

#include <stdint.h>

/* From now on another thread that wants the CPU of the calling thread waits for it no longer than
 * `ns`, rather than some milliseconds. Policy and nice value stay. Linux before 6.12 ignores it. */
void slice_shorten(uint64_t ns);
