/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver's message of a failed assertion names the function. When several clients had work, the
 * name tells which of them may have caused the fault.
 */
#pragma once

#include <stdbool.h>

/* Whether an assertion in `text` may have failed in this kernel, given by its name in the module.
 */
bool assert_message_names(const char *text, const char *kernel);
