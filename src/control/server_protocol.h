/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between funneld and its servers, over one private SOCK_SEQPACKET socketpair a
 * server: each message is one fixed structure that begins with a server_header.
 *
 * The daemon starts a server with the command line
 *     funnel-server --device auto|cuda|soft [--spare] [--batch]
 * and
 *     fd SERVER_CONTROL_FD   the server's end of the socketpair,
 *     fd SERVER_LOG_FD       a pipe for lines of the log, which never waits (stdout and stderr are
 *                            the same pipe),
 *     fd SERVER_CLAIMS_FD    the table of claims.h,
 *     fd SERVER_RETURN_FD    a listening socket, at which the next daemon connects after this one
 *                            has died,
 * already under the uid it serves. The server answers READY, or FAILED and exits. From then
 * on the daemon sends a CLIENT message for every program, with the program's own socket attached,
 * and the server welcomes it there. The daemon gives each client a number, by which the server
 * names it from then on. Who the client is, the daemon knows itself
 * (funneld/servers/client_record.h) and never takes from a server.
 *
 * The daemon's end never blocks (it queues), so the server's may. When the daemon's end closes, the
 * server serves the clients that it has, and waits for the next daemon of the same user. That one
 * connects, sends CLAIMS and RESUME, and takes this connection's place. The server answers
 * READY, an ATTACHED or a GONE for each client that the dead daemon may not have heard of, and
 * RESUMED. It keeps each GONE until the daemon has answered it by NOTED.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hello.h"
#include "quota_table.h"
#include "sensors.h"

#define SERVER_PROTOCOL_MAGIC 0x31534e46u /* "FNS1" */
#define SERVER_PROTOCOL_VERSION 17

#define SERVER_CONTROL_FD 3
#define SERVER_LOG_FD 4
#define SERVER_RETURN_FD 6 /* 5 is claims.h's */

#define SERVER_MAX_DEVICES HELLO_MAX_DEVICES
#define SERVER_CLIENTS_MAX 1024u /* that a server has at a time, and far more than it takes */
/* Names of services and namespaces have at most 64 letters, those of lanes more (lane_name.h). */
#define SERVER_NAME_MAX 128

/* X(NAME, number, member, struct): every message. */
#define SERVER_MESSAGES(X)                                            \
    /* daemon to server */                                            \
    X(CLIENT, 1, client, server_client)                               \
    X(STATUS, 2, status, server_status)                               \
    X(SHUTDOWN, 3, shutdown, server_shutdown)                         \
    X(TERMINATE_CLIENT, 4, terminate_client, server_terminate_client) \
    X(SET_LIMITS, 5, set_limits, server_set_limits)                   \
    X(TRACE, 6, trace, server_trace)                                  \
    X(SET_QUOTAS, 7, set_quotas, server_set_quotas)                   \
    X(DEPART, 8, depart, server_depart)                               \
    X(SET_TIMESLICE, 9, set_timeslice, server_set_timeslice)          \
    X(CLAIMS, 10, claims, server_claims)                              \
    X(RESUME, 11, resume, server_resume)                              \
    X(CLIENT_NOTED, 12, client_noted, server_client_noted)            \
    X(MOVE_CLIENT, 13, move_client, server_move_client)               \
    X(SUSPEND_CLIENT, 14, suspend_client, server_suspend_client)      \
    /* server to daemon */                                            \
    X(READY, 64, ready, server_ready)                                 \
    X(FAILED, 65, failed, server_failed)                              \
    X(CLIENT_ATTACHED, 66, client_attached, server_client_attached)   \
    X(CLIENT_GONE, 67, client_gone, server_client_gone)               \
    X(STATUS_ROW, 68, status_row, server_status_row)                  \
    X(STATUS_END, 69, status_end, server_status_end)                  \
    X(RESULT, 70, result, server_result)                              \
    X(FAULT, 71, fault, server_fault)                                 \
    X(ABANDONED, 72, abandoned, server_abandoned)                     \
    X(HEARTBEAT, 73, heartbeat, server_heartbeat)                     \
    X(CLIENT_USAGE, 74, client_usage, server_client_gone)             \
    X(RESUMED, 75, resumed, server_resumed)                           \
    X(MOVE_WISH, 76, move_wish, server_move_wish)

#define SERVER_MESSAGE_NUMBER(name, number, member, type) SERVER_##name = (number),
enum server_message { SERVER_MESSAGES(SERVER_MESSAGE_NUMBER) };
#undef SERVER_MESSAGE_NUMBER

struct server_header {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;    /* enum server_message */
    uint32_t size;    /* of the whole message */
    uint32_t request; /* chosen by the asker and echoed in the answer; 0 where there is none */
};

enum server_state {
    SERVER_INITIALIZING = 0,
    SERVER_ACTIVE = 1,
    SERVER_FAULTED = 2, /* ending after a fault: new clients are refused with 807 */
};

/* Who a client is: filled by the daemon from the kernel's credentials and the hello. */
struct server_identity {
    int32_t pid; /* in the daemon's pid namespace; 0 = in one that it cannot see */
    uint32_t uid;
    uint32_t gid;
    uint32_t owner;              /* of the user ID, where it is a subordinate one, else the same */
    uint64_t pid_namespace;      /* inode number */
    int64_t since;               /* wall clock, seconds */
    char command[256];           /* command line, for people; not trusted */
    char group[HELLO_GROUP_MAX]; /* letters, digits and _, or "" */
    char container[HELLO_GROUP_MAX]; /* short ID of that in which it runs, or "" */
    char space[SERVER_NAME_MAX];     /* the namespace of MPS v3 that it came in by, for people */
};

/* Device memory that clients may have together (joint_ledger.h): those with the same key. */
struct joint_limit {
    uint64_t key;                        /* 0 = there is no such limit */
    uint64_t memory[SERVER_MAX_DEVICES]; /* bytes a device; 0 = no limit */
};

/* Those of a client. */
enum joint_limits {
    JOINT_USER,          /* all clients of its user */
    JOINT_GROUP,         /* those of its user in its group */
    JOINT_CONTAINER,     /* those in its container, as its environment says */
    JOINT_CONTROL_GROUP, /* those in the control group whose dmem.max is the tightest of its groups
                          */
    JOINT_LIMITS,
};

/* The limits in force for a client: the daemon has already combined defaults and hello. */
struct server_limits {
    uint32_t sm_centipercent;                  /* 1..10000; 10000 = no limit */
    uint32_t priority;                         /* 0 normal, 1 below normal */
    uint64_t memory_limit[SERVER_MAX_DEVICES]; /* bytes a device; 0 = no limit */
    /* A static partition: these SMs of that device, whatever the share says. No SMs = none. */
    uint32_t fixed_device;
    uint32_t fixed_first;
    uint32_t fixed_count;
    uint32_t fixed_only; /* 1 = devices are divided by such partitions alone: nothing outside it */
    uint32_t totals_show_limit; /* 1 = totals of memory show the limit, not the device's memory */
    uint32_t class;             /* enum client_class, never CLASS_UNSET */
    /* 1 = may run on multiprocessors of clients that rest. In a static partition only those chunks:
     * bit c = the chunk of borrow_chunk_sms multiprocessors that is number c. */
    uint32_t may_borrow;
    uint32_t borrow_chunk_sms;
    uint64_t borrow_chunks;
    /* Soft limits: beyond them a client is the first to give memory up. 0 = none. */
    uint64_t memory_soft[SERVER_MAX_DEVICES];
    uint32_t oversubscribe; /* 1 = its memory may leave the devices for that of others that do so */
    uint32_t evict_after; /* seconds of rest after which its memory leaves the devices; 0 = none */
    struct joint_limit joint[JOINT_LIMITS];
};

/* ---- daemon to server ---- */

/* Carries one descriptor: the client's socket. */
struct server_client {
    struct server_header header;
    uint32_t id;           /* never 0, unique in this server's life */
    uint32_t is_main_lane; /* 1 = the server is one: its clients may ask for the spare lane */
    struct server_identity identity;
    struct server_limits limits;
    struct hello hello; /* as the client said it; api_hash is for the server to compare */
};

/* Answered by a STATUS_ROW for every client, then STATUS_END. */
struct server_status {
    struct server_header header;
};

/* The server takes no more clients, and leaves when the last has gone, or now. */
struct server_shutdown {
    struct server_header header;
    uint32_t force; /* 1 = do not wait for clients: each gets a sticky 806, then exit */
    uint32_t reserved;
};

/* Answered by RESULT. */
struct server_terminate_client {
    struct server_header header;
    int32_t pid;
    uint32_t id; /* 0 = every client of that pid */
};

/* Answered by RESULT. */
struct server_set_limits {
    struct server_header header;
    int32_t pid;
    uint32_t id; /* 0 = every client of that pid */
    struct server_limits limits;
};

/* The client is to attach to the server of another lane, which is ready. Answered by RESULT when it
 * has left or refuses, however late. */
struct server_move_client {
    struct server_header header;
    uint32_t id;
    uint32_t withdrawn; /* 1 = not any more; not answered */
    uint32_t gentle;    /* 1 = it stays where it would wait for long until its work is done */
    uint32_t cheap;     /* 1 = and where another server would have to lock much of its memory */
    uint32_t device;    /* 1 + that of the server to which it is to move; 0 = to another lane */
    uint32_t reserved;
};

/* Carries one descriptor: the file to write to (trace_format.h). Not answered: a server that is
 * being traced already leaves the file as it is. `request` is the trace's number, by which a second
 * order can end it before its time. */
struct server_trace {
    struct server_header header;
    uint32_t seconds; /* 0: the trace of this number ends now */
    int32_t pid;      /* of this client alone, or in another PID namespace its ID; 0 = all */
};

/* In force from now on; clients keep what they hold. Not answered. */
struct server_set_quotas {
    struct server_header header;
    struct quotas quotas;
};

/* To a server that has faulted: the next one is ready. Not answered. */
struct server_depart {
    struct server_header header;
};

/* How long the GPU runs the server's kernels before it switches to another process, and whether it
 * switches to a batch lane that has work. In force from now on; not answered. */
struct server_set_timeslice {
    struct server_header header;
    uint64_t us;              /* 0 = what the driver gives */
    uint32_t beside_batch;    /* 1 = a batch lane has work */
    uint32_t batch_has_share; /* 1 = and a slice long enough for its share of the time */
};

/* Carries one descriptor, which takes the place of SERVER_CLAIMS_FD; not answered. */
struct server_claims {
    struct server_header header;
};

/* Another daemon has connected: answered by READY, and at last by RESUMED. */
struct server_resume {
    struct server_header header;
};

/* The CLIENT_GONE of that number has been accounted for; not answered. */
struct server_client_noted {
    struct server_header header;
    uint32_t id;
    uint32_t reserved;
};

enum server_suspend {
    SERVER_SUSPEND_END = 0,    /* the client's memory returns */
    SERVER_SUSPEND_LEAVE = 1,  /* it leaves the devices */
    SERVER_SUSPEND_SAVE = 2,   /* it is written to the file, and the client goes on */
    SERVER_SUSPEND_DETACH = 3, /* it leaves for the file, and the client leaves the server: its next
                                * command attaches it again, and the memory returns */
    SERVER_SUSPEND_LOCK = 4, /* it stays on the devices, or returns, and the client stands still */
};

/* Answered by RESULT, with an enum suspend_result. A descriptor comes with the last two, and may
 * come with LEAVE. It is the end of a socket with two descriptors of a file, one only to read. */
struct server_suspend_client {
    struct server_header header;
    int32_t pid;
    uint32_t id;      /* 0 = every client of that pid */
    uint32_t suspend; /* enum server_suspend */
    uint32_t evict;   /* 1 = it returns by itself for the client's next command */
};

/* ---- server to daemon ---- */

enum server_driver {
    SERVER_DRIVER_CUDA = 1, /* NVIDIA's library */
    SERVER_DRIVER_SOFT = 2, /* the software GPU */
};

struct server_device {
    char name[128];
    uint8_t uuid[16];
    char pci_bus_id[16];
    uint64_t memory_total;
    uint32_t sm_count;
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t own_mib;       /* device memory that the server itself takes; 0 = not known */
    uint32_t clustered_sms; /* multiprocessors in whole groups in which clusters run; 0 = all */
};

struct server_ready {
    struct server_header header;
    uint32_t driver; /* enum server_driver */
    uint32_t driver_version;
    uint32_t device_count;
    uint32_t max_clients;
    struct server_device devices[SERVER_MAX_DEVICES];
};

/* The server could not start and exits now. The clients that wait for it are told so. */
struct server_failed {
    struct server_header header;
    int32_t status; /* CUresult */
    char text[468]; /* a message that names the cause and the remedy */
};

struct server_client_attached {
    struct server_header header;
    uint32_t id; /* as it came in CLIENT, like every other */
    uint32_t reserved;
    uint64_t window_base; /* of the client's addresses; 0 = it has left them */
};

/* The use of a client since it attached. Times are nanoseconds; how exact they are stands in
 * docs/accounting.md. */
struct server_usage {
    uint64_t gpu_ns[SERVER_MAX_DEVICES]; /* in which it had kernels on the device */
    uint64_t sm_ns[SERVER_MAX_DEVICES];  /* multiprocessors that they took, times time */
    uint64_t shared_ns;   /* of gpu_ns: while another client had kernels on the same device */
    uint64_t copy_ns;     /* in which it had copies or memsets in streams that wait for no kernel */
    uint64_t queued_ns;   /* in which commands waited for the server */
    uint64_t wait_ns;     /* how long a command has waited for the server on average */
    uint64_t queue_bytes; /* of commands that wait for the server now */
    uint64_t launches;
    uint64_t copies;
    uint64_t copied_up;     /* bytes from the host's memory to the devices */
    uint64_t copied_down;   /* the other way */
    uint64_t copied_within; /* from a device to a device, or inside the host's memory */
    uint64_t stalls;        /* how often it has been in a call because of another client's call */
    uint64_t stalled_ms;
    uint64_t evictions;   /* how often its memory has left to make room for others */
    uint64_t swapped_out; /* bytes of its memory that have left the devices, for whatever reason */
    uint64_t swapped_in;  /* and that have come back */
    char stall_cause[64]; /* of the last one: the other's call and PID; "" = there was none */
};

static inline uint64_t server_usage_copied(const struct server_usage *usage)
{
    return usage->copied_up + usage->copied_down + usage->copied_within;
}

/* Sent once for each client, also for one that was refused and never attached. Also sent as
 * CLIENT_USAGE, some seconds apart, while the client works: then it tells what is known of the
 * client should the server be killed. */
struct server_client_gone {
    struct server_header header;
    uint32_t id;
    int32_t status; /* 0 = left by itself, else why the server ended it (CUresult) */
    char text[216]; /* "" or a message */
    uint64_t memory_peak[SERVER_MAX_DEVICES]; /* the most that it held at a time */
    uint64_t memory_refused;                  /* how often its limit refused an allocation */
    struct server_usage usage;
};

enum server_client_state {
    SERVER_CLIENT_ACTIVE = 1,
    SERVER_CLIENT_INACTIVE = 2, /* terminated or lost to a fault, but its process is still there */
};

struct server_status_row {
    struct server_header header;
    struct server_identity identity; /* the daemon's, for front ends: what a server sends is lost */
    struct server_limits limits;     /* in force */
    uint32_t id;
    uint32_t state;       /* enum server_client_state */
    uint64_t device_mask; /* devices on which it has a context, bit = ordinal */
    uint64_t memory_used[SERVER_MAX_DEVICES];
    uint64_t memory_peak[SERVER_MAX_DEVICES];
    uint64_t memory_refused;
    uint32_t sm_granted[SERVER_MAX_DEVICES]; /* multiprocessors that it gets of each device */
    struct server_usage usage;
    uint64_t held[QUOTA_HELD_COUNT]; /* of what quotas limit, by enum quota */
    uint64_t quota_refused;          /* how often a quota refused something */
    char call[48];    /* that its thread in the server is in, "" = in none that takes long */
    uint64_t call_ms; /* for how long */
    uint64_t memory_swapped[SERVER_MAX_DEVICES]; /* bytes of its memory in the host's instead */
    uint32_t suspended;      /* 1 = until an order to resume; 2 = the same, with its memory there */
    uint32_t evicted;        /* 1 = until its next command */
    uint32_t waits_for_room; /* 1 = until others have made room for it */
    uint32_t obstacle; /* enum suspend_result: why it made no room when it was asked to; or 0 */
    uint64_t rests_ms; /* for how long it has had neither work nor commands */
    struct server_usage before; /* the daemon's: of usage, what it has used in lanes that it left */
};

/* Code that programs of earlier servers have used; path "" = none is kept. */
struct server_code_cache {
    uint32_t entries; /* in the directory, like the bytes */
    uint32_t loaded;  /* libraries that this server has loaded before a client asked for them */
    uint32_t used;    /* of those, how many clients have asked for since */
    uint32_t reserved;
    uint64_t bytes;
    char path[104]; /* cut when longer */
};

struct server_status_end {
    struct server_header header;
    uint32_t state; /* enum server_state */
    uint32_t client_count;
    uint32_t slices_refused; /* 1 = the driver sets no time slices */
    uint32_t reserved;
    uint64_t memory_free[SERVER_MAX_DEVICES];
    struct server_code_cache code_cache;
    /* Bytes of the swap pool, of contents in it, and of contents that are on their device, too. */
    uint64_t swap_locked, swap_used, swap_kept;
    struct server_sensors sensors[SERVER_MAX_DEVICES];
};

/* Answer to TERMINATE_CLIENT, SET_LIMITS and MOVE_CLIENT: CUresult; 201 = there is no such client.
 * To SUSPEND_CLIENT: enum suspend_result. */
struct server_result {
    struct server_header header;
    int32_t status; /* of MOVE_CLIENT: 0 = it has left; why it stays (enum move_obstacle); 201 */
    uint32_t reserved;
};

struct server_fault {
    struct server_header header;
    int32_t status; /* CUresult of the lost context */
    uint32_t device;
    uint32_t id; /* the client that did it, 0 = not known */
    char text[236];
};

/* Kernels of clients that were ended, or are gone, go on and on. Or kernels may leave memory behind
 * that only the end of the server frees. Sent when either changes, and before the CLIENT_GONE of a
 * client that counts. */
struct server_abandoned {
    struct server_header header;
    uint32_t clients;   /* that have ended and not gone yet; 0 = no such kernel runs */
    uint32_t heap_used; /* 1 = a client has had kernels that allocate, in a heap of all clients */
};

/* Sent twice a second by the server's main thread, which waits for neither clients nor driver. */
struct server_heartbeat {
    struct server_header header;
    uint32_t waiting;         /* clients that are in a call while another one is; 0 = text is "" */
    uint32_t waited_ms;       /* how long the first of them has been */
    uint32_t kernels_percent; /* of the time since the last heartbeat: with kernels of clients, on
                                 the device that had them for longest */
    uint32_t long_work;       /* 1 = a kernel has run for some tenths of a second; 0 in
                               * a server without --spare */
    uint32_t held;  /* 1 = holds of the GPU for critical clients cover nearly all of the time */
    char text[768]; /* the call that has lasted longest, its client, and what it waits for */
};

/* Long kernels of others run, and the client is about to load code, for which it would wait. Or it
 * has a name of cuIpc from another server. The daemon answers by MOVE_CLIENT, which is withdrawn at
 * once where the client is not to move. */
struct server_move_wish {
    struct server_header header;
    uint32_t id;
    uint32_t server; /* process ID of the other server; 0 = a lane without long kernels */
};

/* Every client that the server has now, attached or not. The daemon may have a record of a client
 * that is not among them, and of which no GONE came before. That client has never reached the
 * server. */
struct server_resumed {
    struct server_header header;
    uint32_t leaving; /* 1 = the server ends after its last client, as the dead daemon ordered */
    uint32_t count;
    uint32_t client[SERVER_CLIENTS_MAX];
};

/* In bytes; 0 for a kind that does not exist. */
static inline size_t server_message_size(unsigned kind)
{
    switch (kind) {
#define SERVER_MESSAGE_SIZE(name, number, member, type) \
    case number:                                        \
        return sizeof(struct type);
        SERVER_MESSAGES(SERVER_MESSAGE_SIZE)
#undef SERVER_MESSAGE_SIZE
    }
    return 0;
}

/* Capacity for any message, suitably aligned: what a receiver reads into. */
union server_any {
    struct server_header header;
#define SERVER_MESSAGE_MEMBER(name, number, member, type) struct type member;
    SERVER_MESSAGES(SERVER_MESSAGE_MEMBER)
#undef SERVER_MESSAGE_MEMBER
};

/* Zero a message of this kind and fill its header. `request` is the one being asked or answered. */
static inline void *server_message_init(void *message, unsigned kind, uint32_t request)
{
    struct server_header *header = memset(message, 0, server_message_size(kind));

    header->magic = SERVER_PROTOCOL_MAGIC;
    header->version = SERVER_PROTOCOL_VERSION;
    header->kind = (uint16_t)kind;
    header->size = (uint32_t)server_message_size(kind);
    header->request = request;
    return message;
}

/* Is what came in a whole message of a kind that we know? Text fields are not checked. */
static inline bool server_message_valid(const void *message, size_t bytes)
{
    const struct server_header *header = message;

    return bytes >= sizeof(*header) && header->magic == SERVER_PROTOCOL_MAGIC &&
           header->version == SERVER_PROTOCOL_VERSION && header->size == bytes &&
           server_message_size(header->kind) == bytes;
}
