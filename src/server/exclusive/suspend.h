/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspended sessions: their threads run no further command. Exclusive calls, graphs with
 * conditional nodes and the upkeep suspend sessions, and several of them may suspend the same
 * session. It goes on when all of them have ended the suspension, or at the latest of their times.
 */
#pragma once

#include "exclusive.h"

/* Suspends a session from its next command on, until suspend_end(), or until clock_ns() is `until`;
 * of several times the latest counts. Beyond SUSPENDED_MAX sessions it does nothing. The caller
 * holds the server's lock. */
#define SUSPENDED_UNTIL_END UINT64_MAX
void suspend_session(struct exclusive_call *call, struct session *session, uint64_t until);

/* On a thread of none of these sessions: waits until their threads have put their launches into
 * streams and are in no call. Waits for at most `timeout_ns`, since one of them may be in a call
 * that waits. Takes the server's lock. */
void suspend_await_rest(struct server *server, const struct exclusive_call *call,
                        uint64_t timeout_ns);

/* All sessions of the call go on. Takes the server's lock. */
void suspend_end(struct server *server, struct exclusive_call *call);

/* The same, but sessions that were first suspended until the end go on EXCLUSIVE_LINGER_NS later.
 */
void suspend_linger(struct server *server, struct exclusive_call *call);

/* On a thread of the server's own: suspends all sessions for EXCLUSIVE_BRIEF_NS at most, and blocks
 * admission. Waits for at most `timeout_ns` until they are at rest. The second undoes it. */
void suspend_all(struct server *server, struct exclusive_call *call, uint64_t timeout_ns);
void suspend_all_end(struct server *server, struct exclusive_call *call);

/* Does the session's thread wait: for a command, for its stream's turn, or because the session is
 * suspended? Whatever the thread did before it came to rest is then visible to the asker. */
bool session_is_at_rest(const struct session *session);

/* On the session's thread. Partner: session_is_at_rest(). */
void session_set_at_rest(struct session *session, bool at_rest);

/* On the session's thread: whether it shall run no further command for now. */
bool session_is_suspended(struct session *session);

/* On the session's thread, at rest or not: waits, at rest, while the session is suspended. The
 * others see meanwhile how far its work comes. The session is not at rest afterwards. */
void suspend_await_end(struct session *session);

/* From the first to the second, no client that has just attached begins its work. Its first kernel
 * may be long, and the exclusive call would wait for it. Both take the server's lock. */
void admission_block(struct server *server);
void admission_unblock(struct server *server);

/* On the thread of a client that has attached: waits for a second at most while admission is
 * blocked, and makes the session SESSION_SERVING. Takes the server's lock. */
void admission_wait(struct session *session);
