/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver says of a failed assertion names the function that it is in, and so tells whose it
 * may be when several clients had work.
 */
#pragma once

#include <stdbool.h>

/* Whether an assertion in `text` failed in a function that this kernel, by its name in the module,
 * may be. */
bool assert_message_names(const char *text, const char *kernel);
