/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a driver's writes a format explains. A driver does not say who printed a record of its
 * buffer; but formats are known, and few programs have the same ones.
 */
#pragma once

#include "driver_output.h"

/* Where a record that was printed by this format ends, beginning at `at`: 0 when none can begin
 * there. */
size_t format_match(const char *format, const struct driver_writes *writes, size_t at);
