/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels and ranges, which a program may read as long as it lives. */
#pragma once

/* The same text, for the life of the process; "" without memory. From any thread. */
const char *cupti_intern(const char *name);

void cupti_intern_after_fork(void);
