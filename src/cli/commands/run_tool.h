/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that need NVIDIA's driver in the program. */
#pragma once

/* The name of the tool that `program` is, or under which this process was started; NULL for
 * neither. */
const char *run_tool_find(const char *program);

/* The name of another library that the driver is to load into programs, which may use CUPTI; NULL:
 * none. */
const char *run_tool_library(void);
