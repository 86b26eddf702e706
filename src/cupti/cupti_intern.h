/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels, which a program may read as long as it lives. */
#pragma once

/* The same text, for the life of the process; "" without memory. One thread at a time. */
const char *cupti_intern(const char *name);
