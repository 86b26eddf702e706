/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of the control region: commands one way through the ring, answers the other way
 * through reply slots, errors through two words.
 *
 * A command is a struct ring_message whose kind is channel_kind(). That is its number in the wire
 * ledger, and for a synchronous one the slot of the answer. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_result.h"
#include "lock.h"
#include "region.h"
#include "ring.h"
#include "spin.h"

/* The longest command, header included. */
#define CHANNEL_MESSAGE_MAX 65536u

/* Numbers of commands are below; the generator refuses others (tools/apigen/parser.py). */
#define CHANNEL_OPS 128u

#define CHANNEL_NO_SLOT (-1)
#define CHANNEL_NOT_SENT UINT64_MAX

/* ring_message.kind: bits 0..15 the call, 16..23 the slot, 31 whether a slot is named. */
static inline uint32_t channel_kind(uint32_t op, int slot)
{
    return slot < 0 ? op : op | (uint32_t)slot << 16 | 1u << 31;
}

static inline uint32_t channel_kind_op(uint32_t kind)
{
    return kind & 0xffffu;
}

static inline bool channel_kind_has_slot(uint32_t kind)
{
    return kind >> 31;
}

/* The slot, perhaps a nonsensical one, or CHANNEL_NO_SLOT. */
static inline int channel_kind_slot(uint32_t kind)
{
    return channel_kind_has_slot(kind) ? (int)(kind >> 16 & 0x7fffu) : CHANNEL_NO_SLOT;
}

/* ---- the client's end ---- */

struct channel {
    struct region *region;
    void *ring_data;
    struct ring ring;
    uint32_t reserved;               /* bytes that channel_commit() will send */
    uint64_t sent;                   /* bytes ever sent; under the lock */
    uint64_t used[CHANNEL_OPS / 64]; /* bit c: call c was ever sent; under the lock */
    /* `sent` before the call that waits in a slot, or CHANNEL_NOT_SENT. */
    uint64_t asked_at[REPLY_SLOTS];
    struct lock lock; /* turns of the producers */
    int socket;       /* not ours to close */
    _Atomic uint32_t
        busy_slots;          /* bit s: slot s is taken; the futex of threads that wait for one */
    _Atomic uint32_t gone;   /* 1 = the server's end has closed */
    _Atomic uint32_t broken; /* 1 = and a call has reported it */
    /* Called before a call reports that the server is gone: whether there is a new one. NULL =
     * never. */
    bool (*revive)(void);
    /* Before each command, with the lock; it may send commands itself. NULL = none. */
    void (*_Atomic before_command)(struct channel *channel);
    _Atomic uint32_t output_seen; /* of region->output_notifications */
    uint32_t output_head[OUTPUT_KINDS];
};

/* Maps the server's region: 0, -EPROTO when it is not one, -errno. Both descriptors stay the
 * caller's; `socket` must stay open until channel_close(). */
int channel_open(struct channel *channel, int region_fd, size_t region_size, uint32_t ring_bytes,
                 int socket);

/* Unmaps. No thread may be inside. Accepts an all-zero struct. */
void channel_close(struct channel *channel);

/* A call of this kind has failed, and no other one was sent: as if none had been. */
void channel_forget_call(struct channel *channel, uint32_t op);

/* Turns of the producers: reserve, fill, commit, and whatever must stay in order with them. */
void channel_lock(struct channel *channel);
void channel_unlock(struct channel *channel);

/* Space for a command of `size` bytes, header included (8 .. CHANNEL_MESSAGE_MAX): waits while the
 * ring is full; NULL when the server is gone meanwhile, or the size is out of bounds. The caller
 * holds the lock, writes `kind` and the body behind the 8 bytes of header. `size` is rounded up to
 * 16 in the header, and the rounding bytes are 0. */
struct ring_message *channel_reserve(struct channel *channel, uint32_t size);

/* Sends the last message of channel_reserve(). */
void channel_commit(struct channel *channel);

/* A reply slot for one synchronous command, to be put into its kind: 0 .. REPLY_SLOTS - 1. Waits
 * while all are taken, and for the move to another server once channel_error() is set;
 * CHANNEL_NO_SLOT when there is no move. Without the lock. */
int channel_reply_begin(struct channel *channel);

/* Waits for the answer in `slot`: its status, with the data in place until channel_reply_end().
 * When the server is gone or has failed this client: channel_error(). Without the lock. */
CUresult channel_reply_wait(struct channel *channel, int slot, const void **ret_data,
                            uint32_t *ret_size);

/* Gives the slot back, answered or never used. CHANNEL_NO_SLOT is allowed. */
void channel_reply_end(struct channel *channel, int slot);

/* The server's sticky error, which every call reports from now on, or CUDA_SUCCESS. */
static inline CUresult channel_sticky_error(const struct channel *channel)
{
    return (CUresult)atomic_load_explicit(&channel->region->sticky_error, memory_order_acquire);
}

/* channel_sticky_error(), else CUDA_ERROR_MPS_RPC_FAILURE if the server is known to be gone. Two
 * loads; no system call. */
static inline CUresult channel_error(const struct channel *channel)
{
    CUresult sticky = channel_sticky_error(channel);
    if (sticky != CUDA_SUCCESS)
        return sticky;
    bool gone = atomic_load_explicit(&channel->gone, memory_order_relaxed) != 0;
    return gone ? CUDA_ERROR_MPS_RPC_FAILURE : CUDA_SUCCESS;
}

/* Why nothing was sent: channel_error(), or CUDA_ERROR_MPS_RPC_FAILURE where that is silent. */
CUresult channel_failure(const struct channel *channel);

/* Takes the error of an earlier asynchronous command out, or CUDA_SUCCESS. */
CUresult channel_take_deferred_error(struct channel *channel);

/* The program is about to be told that the server is gone: from now on it is too late for another.
 */
void channel_break(struct channel *channel);

/* Undoes channel_break(): what failed was a call of the library's own, of which the program is told
 * nothing. No other thread uses the channel. */
void channel_mend(struct channel *channel);

/* Asks the kernel whether the server is still there; once gone, gone for good. For threads that
 * sleep on something else, such as a fence word: ask at least every 100 ms. */
bool channel_alive(struct channel *channel);

/* ---- after the server's death; no other thread uses the channel ---- */

/* The end of what was sent, which the server has not read: its size. Its first message is at
 * channel->sent minus that. */
uint32_t channel_unread(const struct channel *channel, const unsigned char **ret_messages);

/* The call that waits in a slot, whether the server has read it or not. Gives its header and its
 * place in the ring, to which a server may still write. NULL when none was sent, later commands
 * have taken its place, or the header is none. */
const void *channel_asked(const struct channel *channel, int slot, struct ring_message *ret_header);

/* Takes the region of another server, at the same addresses. Threads that wait for an answer go on
 * waiting, for the new server. After an error (-errno) nothing has changed. */
int channel_reopen(struct channel *channel, int region_fd, size_t region_size, uint32_t ring_bytes);

/* Answers the calls that wait in these slots, one bit each, in the server's place. */
void channel_answer(struct channel *channel, uint32_t slots, CUresult status);

/* Sends messages as they are. 0 or -EPIPE. */
int channel_send_again(struct channel *channel, const unsigned char *messages, uint32_t size);

/* Every later call reports this. */
void channel_give_up(struct channel *channel, CUresult error);

/* Puts the output back that a call has taken too early. */
void channel_defer_error(struct channel *channel, CUresult error);

/* Whether device output of the program may be waiting: one load. From any thread. */
static inline bool channel_has_output(const struct channel *channel)
{
    return atomic_load_explicit(&channel->region->output_notifications, memory_order_acquire) !=
           atomic_load_explicit(&channel->output_seen, memory_order_relaxed);
}

/* The server's hints for each client about all of its clients. A hint: the reader may be late. */
struct channel_load {
    uint32_t copiers;  /* how many are copying much, this one perhaps among them */
    uint32_t spin_ns;  /* longest spin of a waiting thread while CPUs are short; 0 = they are not */
    uint32_t yield_ns; /* then: how long it yields its CPU before it sleeps */
};

static inline struct channel_load channel_load(const struct channel *channel)
{
    return (struct channel_load){
        .copiers = atomic_load_explicit(&channel->region->copiers, memory_order_relaxed),
        .spin_ns = atomic_load_explicit(&channel->region->spin_ns, memory_order_relaxed),
        .yield_ns = atomic_load_explicit(&channel->region->yield_ns, memory_order_relaxed),
    };
}

/* Starts a spin of a thread that waits for the server, or for work that the server has given to the
 * GPU: spin_begin_yielding(). While CPUs are short, the server says how long it yields, at most. */
struct spin channel_spin_begin(const struct channel *channel, uint64_t yielding_ns);

/* Whether the server says that calls that wait for all kernels would take long in the client's
 * context, and not in another one. A hint, too. */
static inline bool channel_move_wanted(const struct channel *channel)
{
    return atomic_load_explicit(&channel->region->move_wanted, memory_order_relaxed);
}

/* Whether the server wants to know when a thread of the client begins to wait (fnHold). A hint,
 * too. */
static inline bool channel_hold_wanted(const struct channel *channel)
{
    return atomic_load_explicit(&channel->region->hold_wanted, memory_order_relaxed);
}

/* The word of enum leave_state, 0 most of the time. */
static inline uint32_t channel_leave(const struct channel *channel)
{
    return atomic_load_explicit(&channel->region->leave, memory_order_acquire);
}

/* Changes that word, unless it is not `from` any more. */
static inline bool channel_leave_change(struct channel *channel, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(&channel->region->leave, &from, to,
                                                   memory_order_acq_rel, memory_order_acquire);
}

/* Whether a call that begins has something to do first: channel_error(), or a planned move. */
static inline bool channel_needs_attention(const struct channel *channel)
{
    const struct region *region = channel->region;

    return (atomic_load_explicit(&region->sticky_error, memory_order_acquire) |
            atomic_load_explicit(&region->leave, memory_order_relaxed) |
            atomic_load_explicit(&channel->gone, memory_order_relaxed)) != 0;
}

/* Whether the client is being traced. A hint, too. */
static inline bool channel_traced(const struct channel *channel)
{
    return atomic_load_explicit(&channel->region->traced, memory_order_relaxed);
}

/* Whether kernels of the program may have printed what the server has not collected, or has no
 * capacity for: then fnPrintfCollect brings it. Where the caller has seen the fence behind a
 * kernel, it knows of what the kernel printed. One load. From any thread. */
static inline bool channel_output_pending(const struct channel *channel)
{
    return atomic_load_explicit(&channel->region->output_pending, memory_order_acquire);
}

/* Records that a call is about to take the present output. One thread at a time does these two. */
void channel_mark_output_seen(struct channel *channel);

/* Takes up to `size` bytes of waiting output and returns how many there were. */
size_t channel_take_output(struct channel *channel, enum region_output kind, char *ret_bytes,
                           size_t size);

/* ---- the server's end; everything in the region is hostile ---- */

struct channel_server {
    struct region *region;
    void *ring_data;
    struct ring ring;
    int region_fd; /* for the client; close it with channel_server_close_fd() when handed over */
    uint32_t output_notifications;
    uint32_t output_tail[OUTPUT_KINDS];
    _Atomic uint32_t last_kind; /* of the message below */
    _Alignas(16) unsigned char message[CHANNEL_MESSAGE_MAX];
};
