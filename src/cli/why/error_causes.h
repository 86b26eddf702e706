/* SPDX-License-Identifier: Apache-2.0 */
/* The usual causes of the driver API's errors in programs that run through Funnel. */
#pragma once

struct error_cause {
    int first, last; /* CUresults that the row explains */
    const char *cause;
    const char *remedy;
};

/* NULL for a number that is no error. */
const struct error_cause *error_cause_find(int result);
