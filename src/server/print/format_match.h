/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches a driver's writes with a format. A driver does not report which kernel printed a record,
 * but the formats are known, and few programs have the same ones.
 */
#pragma once

#include "driver_output.h"

/* The end of a record of this format that begins at `at`; 0 when none can begin there. */
size_t format_match(const char *format, const struct driver_writes *writes, size_t at);
