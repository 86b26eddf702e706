/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a client and its server share: every word, its writer and its reader.
 *
 * 1. The control region (a sealed memfd made by the server, mapped anywhere; the GPU never sees
 * it):
 *
 *     struct region   words | 32 reply slots of 8 KiB | 2 output areas of 64 KiB | ring words |
 *                     ring data (mapped twice)
 *
 * 2. The GPU-visible region (a memfd mapped at the same window address by both, and registered with
 *    the driver by the server):
 *
 *     fence words u32[4096] | host-wait words u32[4096] | 16 staging slots of 1 MiB
 *
 * The client is hostile to the server and can write every byte of both. The server reads a word
 * once, into its own memory, and checks it there. Only channel.c touches the control region. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "output_area.h"
#include "ring.h"

#define REGION_MAGIC 0x324e5246u /* "FRN2" */
#define REGION_PAGE 4096u

#define REPLY_SLOTS 32u
#define REPLY_SLOT_SIZE 8192u
#define REPLY_HEADER_SIZE 16u
#define REPLY_DATA_MAX (REPLY_SLOT_SIZE - REPLY_HEADER_SIZE)

/* State of a slot. FREE -> WAITING: client, before it sends. WAITING -> SLEEPING: client, before it
 * sleeps on the word. Any -> DONE: server, after the answer is written. DONE -> FREE: client. */
enum reply_state {
    REPLY_FREE = 0,     /* no thread waits for an answer here */
    REPLY_WAITING = 1,  /* a command names the slot, and its sender spins */
    REPLY_SLEEPING = 2, /* its sender sleeps on the word */
    REPLY_DONE = 3,     /* the answer is complete */
};

/* One answer. `status`, `size` and `data` are the server's until the state is DONE, then the
 * client's to read. */
struct reply_slot {
    _Atomic uint32_t state; /* enum reply_state; the futex of the thread that waits */
    int32_t status;         /* a CUresult */
    uint32_t size;          /* bytes of data */
    uint32_t reserved;
    unsigned char data[REPLY_DATA_MAX]; /* the reply of the command */
};

_Static_assert(sizeof(struct reply_slot) == REPLY_SLOT_SIZE, "slots are packed");

/* The planned move to another server. NONE, PENDING -> WANTED: server. WANTED -> ASKED: client,
 * when its other threads are outside the library. ASKED -> GRANTED: server, when it reads no more
 * commands and the work of those that it has read is done. The client then attaches to the other
 * server, and hangs up. ASKED -> COPIES -> GRANTED or REFUSED: server, which first copies the
 * client's memory to another device. The client waits as long as the server lives; its work is
 * done. ASKED -> WANTED: server, work is not done in time; the client asks again
 * later. WANTED, ASKED, GRANTED -> REFUSED: client, which stays. NONE, ASKED -> REFUSED: server,
 * for a move that no operator wants, or whose variables cannot be copied. ASKED -> NONE: server,
 * the move is not wanted any more. REFUSED -> NONE: server. NONE, PENDING, WANTED -> SETTLED, and
 * back to NONE or WANTED: server, the client stands still. NONE -> PENDING: server, the client has
 * asked for a move, which the daemon may order. PENDING -> NONE: server, the daemon does not; or
 * client, which waits no longer. */
enum leave_state {
    LEAVE_NONE = 0,
    LEAVE_WANTED = 1,
    LEAVE_ASKED = 2,
    LEAVE_GRANTED = 3,
    LEAVE_REFUSED = 4, /* with the enum move_obstacle in the bits above */
    LEAVE_SETTLED = 5, /* the server: all that it has read is done, and it reads nothing now */
    LEAVE_PENDING = 6, /* the client waits for what the daemon says to its wish */
    LEAVE_COPIES = 7,  /* the server copies its memory to another device */
};

#define LEAVE_OBSTACLE_SHIFT 8

/* Where device output leaves the client. */
enum region_output {
    OUTPUT_STDOUT = 0, /* standard output: printf */
    OUTPUT_STDERR = 1, /* standard error: failed assertions */
    OUTPUT_KINDS = 2,  /* how many there are */
};

struct region {
    uint32_t magic;      /* server, once; the client checks it */
    uint32_t ring_bytes; /* server, once */
    _Atomic uint32_t
        sticky_error; /* server: CUresult that every later call reports; 0 = all is well */
    _Atomic uint32_t
        deferred_error; /* server: sets a CUresult if it is 0; the client takes it out, once */
    _Atomic uint32_t
        output_notifications;     /* server: how often it has written to an output area; wraps */
    _Atomic uint32_t copiers;     /* server: how many clients are copying much */
    _Atomic uint32_t spin_ns;     /* server: longest spin while CPUs are short; 0 = they are not */
    _Atomic uint32_t move_wanted; /* server: 1 = the client had better load code in another lane */
    _Atomic uint32_t traced;      /* server: 1 = the client is traced, and reports its ranges */
    _Atomic uint32_t output_pending; /* server: 1 = kernels of the client may have printed what is
                                        not in an output area yet */
    _Atomic uint32_t leave;       /* both, in turn: enum leave_state; from bit 8 on an obstacle */
    _Atomic uint32_t hold_wanted; /* server: 1 = the client says when it begins to wait: fnHold */
    _Atomic uint32_t yield_ns;    /* server: how long a thread yields its CPU after such a spin */
    unsigned char pad1[REGION_PAGE - 52];
    struct reply_slot slots[REPLY_SLOTS];    /* of synchronous commands */
    struct output_area output[OUTPUT_KINDS]; /* device output, by enum region_output */
    struct ring_shared ring;                 /* see ring.h */
    unsigned char pad2[REGION_PAGE - sizeof(struct ring_shared)];
    /* ring_bytes of ring data follow */
};

_Static_assert(sizeof(struct region) % REGION_PAGE == 0, "ring data begins on a page");

#define REGION_RING_BYTES (1u << 20)
#define REGION_SIZE (sizeof(struct region) + REGION_RING_BYTES)

/* The GPU-visible region. Fence words are written by the GPU (or by the server for it) and read by
 * the client; they only grow. Host-wait words are written by the client's callback thread and
 * waited for by the GPU. Staging is written by the one who copies, in turns that the commands
 * order. */
#define GPU_REGION_FENCES 4096u
#define GPU_REGION_HOST_WAITS 4096u
#define GPU_REGION_STAGING_SLOTS 16u
#define GPU_REGION_STAGING_SLOT_SIZE (1u << 20)

#define GPU_REGION_FENCE_OFFSET 0u
#define GPU_REGION_HOST_WAIT_OFFSET (GPU_REGION_FENCES * 4u)
/* No slot lies in two of the chunks in which the server locks host memory. */
#define GPU_REGION_STAGING_OFFSET GPU_REGION_STAGING_SLOT_SIZE
#define GPU_REGION_STAGING_SIZE (GPU_REGION_STAGING_SLOTS * GPU_REGION_STAGING_SLOT_SIZE)

/* Rounded up to 2 MiB, so that it may lie on large pages. */
#define GPU_REGION_SIZE \
    ((GPU_REGION_STAGING_OFFSET + GPU_REGION_STAGING_SIZE + (2u << 20) - 1) & ~((2u << 20) - 1))

_Static_assert(GPU_REGION_HOST_WAIT_OFFSET + GPU_REGION_HOST_WAITS * 4u <=
                   GPU_REGION_STAGING_OFFSET,
               "words come before slots");
