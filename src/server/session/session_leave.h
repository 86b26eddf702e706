/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planned moves of clients to another server, which is another lane (docs/design/lanes.md). The
 * daemon orders one, and the client asks for it at an idle point. Then this server reads no more of
 * its commands, and waits until the work of those that it has read is done. What is left in the
 * ring goes with the client. The words are those of enum leave_state.
 */
#pragma once

#include "server.h"
#include "session.h"

/* The main thread: the client is to move, or not any more. The request is answered when it leaves
 * or refuses. A gentle one is refused where the client would wait for long until its work is done.
 * A cheap one is refused where the client has much page-locked memory. */
void session_leave_order(struct session *session, const struct server_move_client *order);
void session_leave_withdraw(struct session *session);

/* The main thread: whether the client has begun to wait for an order of which the daemon does not
 * know yet. *ret_server is that of the lane that the client wishes. */
bool session_leave_take_wish(struct session *session, uint32_t *ret_server);

/* The session thread, for a client that would rather be in another lane. That is the lane of the
 * server with this process ID, or with 0 one without long kernels. The daemon is asked to order
 * that, and the client waits for what it says. False where a move is under way. */
bool session_leave_wish(struct session *session, uint32_t server);

/* Any thread: whether the client has the grant to leave, or waits for copies of its memory. */
bool session_leave_is_granted(const struct session *session);

/* The watchdog, some fifty times a second: lets session threads know of clients that ask. */
void session_leave_watch(struct server *server);

/* The session thread, between two commands: waits with the client's commands while it moves. */
void session_leave_follow(struct session *session);

/* The session thread: the client, which stood still (LEAVE_SETTLED), goes on, or hears of an order
 * that has come meanwhile. */
void session_leave_unsettle(struct session *session);

/* The main thread: whether the client has an answer for the daemon, and then which. False while it
 * has none, or no order. */
bool session_leave_answer(struct session *session, uint32_t *ret_request, uint32_t *ret_obstacle);
