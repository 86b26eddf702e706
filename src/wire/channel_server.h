/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of the control region. The client can write every byte of it. So nothing in it
 * is ever read back except ring messages (ring.c) and, once, whether a caller sleeps. */
#pragma once

#include "channel.h"

/* A new region and its server's end (about 64 KiB, hence on the heap): 0 or -errno. */
int channel_server_create(struct channel_server **ret_server);
void channel_server_destroy(struct channel_server *server);

/* The memfd to send to the client; -1 after channel_server_close_fd(). */
int channel_server_fd(const struct channel_server *server);
void channel_server_close_fd(struct channel_server *server);

/* The next command, copied into private memory: its size, 0 = none, -EPROTO = the client broke the
 * protocol. Valid until the next call. Its place in the ring is already the client's again. */
int channel_server_next(struct channel_server *server, const struct ring_message **ret_message);

/* Between two commands: what the client finds unread then has not been taken, until the next
 * channel_server_next(). */
void channel_server_make_exact(struct channel_server *server);

/* Spins a little, then sleeps, until there seems to be a command, channel_server_kick(), or
 * `timeout_ns` (0 = no limit) is over. */
void channel_server_wait(struct channel_server *server, uint64_t timeout_ns);

/* Whether there seems to be a command. Two loads. */
bool channel_server_has_command(const struct channel_server *server);

/* Prepares for the next channel_server_has_command() and channel_server_next(): ring_prefetch(). */
void channel_server_prefetch(const struct channel_server *server);

/* From any thread: ends the current or next channel_server_wait(). */
void channel_server_kick(struct channel_server *server);

/* From any thread, and only a hint: the number of the last command taken, and in `ret_position` how
 * far the ring had been read then. */
uint32_t channel_server_last_op(const struct channel_server *server, uint32_t *ret_position);

/* From any thread: how many bytes of commands wait in the ring, at most its size. `ret_taken` gets
 * the bytes that have been taken, modulo 2^32. */
uint32_t channel_server_queued(const struct channel_server *server, uint32_t *ret_taken);

/* Answers in `slot`: 0; -EPROTO when the client named a slot that does not exist; -EMSGSIZE when
 * the answer does not fit (REPLY_DATA_MAX). Wakes the caller only if it sleeps. */
int channel_server_reply(struct channel_server *server, int slot, CUresult status, const void *data,
                         uint32_t size);

/* The context is lost or the client is terminated: every later call of the client reports `status`.
 * The first one stays. Everyone asleep in the client wakes. From any thread. */
void channel_server_fail(struct channel_server *server, CUresult status);

/* An asynchronous command failed on its own: kept for the client's next synchronizing call, unless
 * one is kept already. From any thread. */
void channel_server_defer(struct channel_server *server, CUresult status);

/* Device output of the client: takes as much as fits and returns its size. One
 * thread at a time. */
size_t channel_server_put_output(struct channel_server *server, enum region_output kind,
                                 const char *bytes, size_t size);

/* Sets the word that channel_output_pending() reads: before the launch of a kernel that may
 * print, and back when the output is in an output area. One thread at a time. */
void channel_server_set_output_pending(struct channel_server *server, bool pending);

/* Sets the word that channel_move_wanted() reads. From any thread. */
void channel_server_want_move(struct channel_server *server, bool wanted);

/* Sets the word that channel_hold_wanted() reads. From any thread. */
void channel_server_want_hold(struct channel_server *server, bool wanted);

/* The word of enum leave_state, as the client has left it: it may be anything. And changing it,
 * unless it is not `from` any more. From any thread. */
uint32_t channel_server_leave(const struct channel_server *server);
bool channel_server_leave_change(struct channel_server *server, uint32_t from, uint32_t to);

/* Sets the word that channel_traced() reads. From any thread. */
void channel_server_set_traced(struct channel_server *server, bool traced);

/* Sets the words that channel_load() reads. From any thread. */
void channel_server_put_load(struct channel_server *server, struct channel_load load);
