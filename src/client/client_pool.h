/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation; see pool.c. */
#ifndef FUNNEL_CLIENT_POOL_H
#define FUNNEL_CLIENT_POOL_H

struct allocation;

/* Called once while attaching: 0, or -1 when there is no memory for it. */
int pool_init(void);

/* Frees what heap_give() returned, and the pool that it is from has it back. NULL is allowed. */
void pool_end(struct allocation *allocation);

#endif
