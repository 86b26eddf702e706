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

/* Whether it can be: the client has descriptors of all of it. No other thread is inside. */
bool managed_is_whole(void);

/* The client gives up its memory on devices. No other thread is inside. */
void managed_give_up(void);
