/* SPDX-License-Identifier: Apache-2.0 */
/* A static partition as a line of text, by which the next daemon finds it again. */
#pragma once

#include "static_partitions.h"

#define PARTITION_LINE_MAX 256

void partition_line_write(const struct static_partition *partition,
                          char ret_line[PARTITION_LINE_MAX]);

/* Gives the partition that the configuration file has defined again its identifier and its place,
 * or adds the one that a command has cut. One that only an earlier file had is left out. Its place
 * is checked when a server reports its devices. 0; -EINVAL; -ENOSPC when there are too many. */
int partition_line_restore(struct static_partitions *partitions, const char *line);
