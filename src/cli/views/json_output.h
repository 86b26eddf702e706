/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct json_t; /* jansson's */

/* Prints `json`, which this function releases, and a new line: the exit status of the program. NULL
 * fails: what was to be printed could not be made, or this build cannot make any JSON. */
int json_output(struct json_t *json);
