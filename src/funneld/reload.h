/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reload: the daemon becomes the program that is installed now, and keeps its process. The
 * listening sockets stay open, so programs that attach wait for a moment and fail never. Programs
 * that the daemon has not handed to a server yet, and front ends, stay connected (inherited.h). A
 * front end that does not read its answers for seconds is disconnected. Servers are taken over as
 * after a kill (takeover.h), and settings are kept (settings.h).
 *
 * Before that, the new program tries its options and files in a process of its own (--check). Where
 * it fails, the old one goes on.
 */
#pragma once

#include <sys/types.h>

struct console;
struct daemon;

/* A front end asks for it. It is answered by the new program, or with the reason why there is none.
 */
void reload_begin(struct daemon *daemon, struct console *console);

/* A child that was no server has ended. */
void reload_child_ended(struct daemon *daemon, pid_t pid, int wait_status);

/* In the new program, once servers are known: goes on with what was inherited. */
void reload_finish(struct daemon *daemon);
