/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this process is one of several that work together. Such processes may share memory by
 * cudaIpc, whose names belong to one server, so the daemon keeps them together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reads the environment, in which launchers of MPI, Slurm and PyTorch speak, and `command`. That is
 * the command line of this process with NULs, cut to `size` bytes. A forked process has its
 * parent's, and one that Python's multiprocessing has started says so. */
bool job_has_several_processes(const char *command, size_t size);
