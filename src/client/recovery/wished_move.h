/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves to another lane that the client asks the daemon for, by its server. It leaves long kernels
 * before a call that may wait for all of them, and moves to the lane of a name of cuIpc. The
 * calling thread holds no lock.
 */
#pragma once

#include <stdint.h>

/* Asks for a lane without long kernels, waits for the answer, and moves if the daemon orders that.
 * The hook of recovery_consider_move(). */
void wished_move_consider(void);

/* The same to the lane of a server, by its number. Several threads may call it at a time, and wait
 * for one move. The client may still move later. The hook of recovery_join(). */
void wished_move_join(uint32_t server);
