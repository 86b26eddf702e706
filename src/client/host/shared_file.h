/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From memory that this process shares with others to the file that is mapped there.
 */
#pragma once

#include "page_map.h"

/* Whether the areas are one range of one file, and whether other processes see writes to it. */
bool shared_file_is(const struct page_area *areas, unsigned count);

/* A descriptor of that file for reading and writing, which the caller closes. It comes from one
 * that the process has, from the name in the memory map, or for a privileged process from the
 * kernel. -ENOENT: none leads to the file. Or -errno. To close it ends the locks that the process
 * has on the file by fcntl(2). */
int shared_file_open(const struct page_area *area);
