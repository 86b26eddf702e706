/* SPDX-License-Identifier: Apache-2.0 */
/* The forms in which `funnel usage` prints its sums. */
#pragma once

#include "usage_report.h"

/* A table with hours, for people; the sum of all is its last line. */
void usage_print_text(const struct usage_report *report);

/* With seconds and bytes: a line of names, and a line for each row, as RFC 4180 has it. */
void usage_print_csv(const struct usage_report *report);

/* The same names: 0, or 1 after an error message. */
int usage_print_json(const struct usage_report *report);
