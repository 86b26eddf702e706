/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the usage journal: usage.jsonl in the log directory, and the older ones beside it.
 */
#pragma once

/* Hands each whole line, without its end, to `take`. 0, or an exit status after an error message.
 */
int usage_files_read(const char *log_directory, void (*take)(void *context, const char *line),
                     void *context);
