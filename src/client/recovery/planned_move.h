/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves to another server that the daemon has ordered. The last server does all work that it has
 * read, and then says that the client may leave. Until another server has offered the client its
 * place, the client has lost nothing.
 */
#pragma once

/* Moves if there is an order and no other thread is inside the library. Holds no lock. The hook of
 * recovery_consider_leaving(). */
void planned_move_consider(void);
