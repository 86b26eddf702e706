/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this process was made again from a dump (CRIU). It is younger then than what it
 * remembers, and its descriptors are other files of the same kinds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds since the machine started. */
uint64_t machine_ns(void);

/* Whether the process was made after that time of machine_ns(), or the machine was started. */
bool process_is_restored_since(uint64_t time_ns);
