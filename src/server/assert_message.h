/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver's message of a failed assertion names the function that it is in, and so tells which
 * client may have caused it when several had work.
 */
#pragma once

#include <stdbool.h>

/* Whether an assertion in `text` may have failed in this kernel, which has its name in the
 * module. */
bool assert_message_names(const char *text, const char *kernel);
