/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server gives up, because it reads what programs send and passes their images to the
 * driver's compiler. NVIDIA's driver was seen to need none of it (docs/sandbox.md). With
 * FUNNEL_NO_SANDBOX nothing is given up.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* First of all: becomes the user that the server is for, -1 = stays. A process that has never run
 * as its user while it could be traced keeps its descriptors, and its memory, from that user from
 * its first step on. 0 or -errno. */
int sandbox_become_user(uid_t uid);

/* Before the driver is loaded and before there are other threads: no capabilities, no new
 * privileges, and only the files of sandbox_files.h. Where the driver may be NVIDIA's and its
 * device files are missing all of that stays, because the driver has a privileged program make
 * these files. */
void sandbox_drop_privileges(bool may_be_nvidia, const char *listen_path);

/* The driver is loaded and its contexts exist: from now on no thread may start a program or a
 * process, look into other processes, make connections, or use what only administration needs. The
 * process leaves no core and cannot be traced. */
void sandbox_seal(void);
