/* SPDX-License-Identifier: Apache-2.0 */
/*
 * __managed__ variables. The code on the GPU reaches such a variable at the driver's address, in
 * memory of the server that no other process can map. So the program has pages of its own at the
 * same address. They move as the pages of managed allocations do (managed_allocation.h). Where
 * pages do not move, the client copies at the points where CUDA makes memory consistent. Changes of
 * the host go up before work that may see them; changes of kernels come down where the program
 * waits for the kernels. The other subsystems take part through managed_hooks.h.
 */
#pragma once

#include "client_context.h"

/* Called once while attaching, before the first call about devices and memory. */
void managed_init(void);

/* Shows another server the memory of managed allocations. With the library closed. */
CUresult managed_replay(void);

/* Whether it can be: the client has descriptors of all of it. No other thread is inside. */
bool managed_is_whole(void);

/* Around a fork, behind memory_before_fork(). A child gives up the parent's managed memory. */
void managed_before_fork(void);
void managed_after_fork_in_parent(void);
void managed_after_fork_in_child(void);

/* The program reaches a variable at an address of the server's from now on. The variable is in the
 * list of its owner, which is empty at first. CUDA_ERROR_MAP_FAILED when something else of the
 * program is there, CUDA_ERROR_NOT_SUPPORTED when another variable is. Waits for the server. The
 * caller has no lock of the client here or in the functions below. */
CUresult managed_enter(struct list *variables, struct context *context, uint64_t address,
                       uint64_t size);

/* The owner of the list goes, and its variables with it. */
void managed_leave(struct list *variables);

/* The context ends. The program still has the addresses of the variables, which stay what they are
 * until their owner has a context again. */
void managed_rest(struct list *variables);
CUresult managed_wake(struct list *variables, struct context *context);

/* The variables of one list, which rest, continue as those of another list, in its context. */
void managed_move(struct list *variables, struct list *other, struct context *context);
