/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User objects. The program, graphs, and launches in flight hold references. When the last
 * reference is dropped, a thread of the owner, which holds no lock, calls the program's function.
 *
 * That thread must not wait for the owner's lock: the thread that has it may wait for work that
 * only this thread can complete. So references have a separate lock.
 */
#pragma once

#include "graph_objects.h"

/* User objects: a copy of a graph takes its own references; the second drops all references of a
 * graph. */
CUresult graph_keeps_copy(const struct graph_keeps *keeps, struct graph_keeps *to);
void graph_keeps_drop(struct graph_keeps *keeps);
/* An exec is about to be destroyed. Its user objects live until its launches are done. */
void graph_exec_let_go(struct graph_exec *exec);
