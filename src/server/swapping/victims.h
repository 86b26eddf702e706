/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clients give memory up for one that waits, and the orders to them. Functions are called
 * with the server's lock held.
 */
#pragma once

#include "room_line.h"

/* How long a client with so many bytes on its devices stays there. */
uint64_t victims_quantum(const struct session *session, uint64_t bytes);

/* The bytes that could leave the device at some time. */
uint64_t victims_could_give_locked(const struct room_wait *wait, unsigned device);

/* Has as many clients leave as the missing bytes take. False when those are not enough now: others
 * stay for their quantum. */
bool victims_order_locked(const struct room_wait *wait, unsigned device, uint64_t missing);

/* Their threads look at an order before each command, so the order is repeated. */
void victims_repeat_locked(const struct room_wait *wait);

/* Those that have not left yet stay. */
void victims_withdraw_locked(const struct room_wait *wait);
