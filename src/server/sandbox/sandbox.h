/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops the server's privileges, because it reads messages of programs and passes their images to
 * the driver's compiler. NVIDIA's driver was seen to need none of them (docs/sandbox.md). With
 * FUNNEL_OFF=sandbox the server keeps all.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The first step: changes to the server's user; -1 = no change. A process that was never traceable
 * as its user keeps its descriptors and memory from that user. 0 or -errno. */
int sandbox_become_user(uid_t uid);

/* Before the driver is loaded and before there are other threads: drops capabilities, new
 * privileges, and all files except those of sandbox_files.h. If NVIDIA's device files may be needed
 * but are missing, the server keeps them, because a privileged program must create these files. */
void sandbox_drop_privileges(bool may_be_nvidia, const char *listen_path);

/* The driver is loaded and its contexts exist. From now on no thread may start a program or a
 * process, inspect other processes, make connections, or use administrative calls. The process
 * leaves no core and cannot be traced. */
void sandbox_seal(void);
