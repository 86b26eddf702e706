/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine inside: decoded instructions, warps and blocks.
 *
 * A register is a vector of 32 lanes in the warp's register file: 4 bytes a lane for everything up
 * to 32 bits, 8 for 64 bits; a predicate is one 32-bit mask. Constants and special registers
 * (%tid.x, ...) are registers as well, filled when the warp starts, so every operand of every
 * instruction is an offset into the file. Bits above a register's own width are undefined; whoever
 * reads narrows.
 *
 * Lanes that stand at the same instruction are a group. The running group is in the warp itself,
 * the others wait in groups[], sorted; the lowest program counter runs first, so groups meet where
 * control flow joins.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "exec.h"
#include "ptx.h"

#define LANES 32
#define FULL_MASK 0xffffffffu
#define REGISTER_ALIGN 64

/*
 * Files whose loops over lanes matter are compiled once for each generation of CPU. What they
 * define has the generation in its name; the best that runs here is chosen when a program is
 * decoded.
 */
#ifndef LANE_GENERATION
#define LANE_GENERATION base
#endif
#define LANE_JOIN(name, generation) name##_##generation
#define LANE_EXPAND(name, generation) LANE_JOIN(name, generation)
#define LANE_NAME(name) LANE_EXPAND(name, LANE_GENERATION)

struct warp;
struct insn;
typedef void (*handler_fn)(struct warp *warp, const struct insn *insn);

/* One cache line. Offsets count bytes of the register file. */
struct insn {
    handler_fn run;
    handler_fn inner; /* what a guard wraps */
    uint32_t d;
    uint32_t a;
    union {
        uint32_t b;
        uint32_t tile; /* of an instruction on matrices: which of the program's */
    };
    uint32_t c;
    union {
        uint64_t imm;
        handler_fn fp_inner; /* what a floating-point environment wraps */
    };
    uint32_t guard; /* a predicate; bit 0 set: negated */
    uint32_t p;     /* a predicate or a second destination */
    uint32_t line;
    uint8_t space; /* enum ptx_space */
    uint8_t width; /* elements of a vector access */
    uint8_t mode;  /* a boolean operator, a floating-point environment, a kind of shuffle ... */
    uint8_t flags;
    uint8_t environment; /* rounding and flushing, where a floating-point environment is wrapped
                            around */
    uint8_t stretch;     /* instructions from here on that only compute, with no way in */
};

#define NO_OPERAND UINT32_MAX

/* insn.environment: 0 to 3 to nearest, to zero, down, up; and whether subnormals are flushed. */
#define FP_FLUSH 4

/* Function pointers: no memory is there, so they cannot be mistaken for data. */
#define FUNCTION_BASE 0xf000000000000000u
#define FUNCTION_STEP 16

static inline uint64_t function_pointer(uint32_t index)
{
    return FUNCTION_BASE + (uint64_t)index * FUNCTION_STEP;
}

/* The function's index in its module; anything else gives a number that is out of range. */
static inline uint64_t function_index(uint64_t pointer)
{
    uint64_t distance = pointer - FUNCTION_BASE;
    return distance % FUNCTION_STEP == 0 ? distance / FUNCTION_STEP : UINT64_MAX;
}

/* insn.flags of memory accesses and comparisons */
enum {
    INSN_WIDE_ADDRESS = 1, /* the base register has 64 bits */
    INSN_SYNCHRONISES = 2, /* volatile, relaxed, acquire, release: one access a lane, never torn */
    INSN_FENCE_BEFORE = 4,
    INSN_NEGATE_C = 8, /* the predicate c is negated */
};

/* insn.flags of every instruction */
enum {
    INSN_COMPUTES = 64, /* changes registers only: it cannot fault, jump or wait */
    INSN_TARGET = 128,  /* of a jump */
};

/* What a program needs of a special register: filled once a warp starts. */
struct special_use {
    uint16_t special;
    uint32_t offset;
};

struct constant {
    uint32_t offset;
    bool is_wide;
    uint64_t bits;
};

struct program_function {
    uint32_t start; /* instruction */
    uint32_t frame; /* bytes of local memory */
    bool may_be_called;
};

/* A kernel ready to run: its code and that of every function it can reach. */
struct program {
    struct insn *code;
    uint32_t code_count;
    uint32_t entry;
    uint32_t file_size;     /* bytes of a warp's register file */
    uint32_t stack_pointer; /* offset of the lanes that hold it */
    uint32_t room; /* of those that say where what alloca gave begins; 0: nothing allocates */
    struct special_use *specials;
    uint32_t special_count;
    struct constant *constants;
    uint32_t constant_count;
    struct program_function *functions; /* by index in the module */
    uint32_t function_count;
    struct tile_op *tiles; /* what instructions on matrices need to know */
    uint32_t tile_count;
    uint32_t local_size; /* bytes a thread when nothing recurses */
    uint32_t static_shared;
    uint32_t dynamic_shared_start;
    bool recursive;     /* or calls through pointers */
    bool uses_reserved; /* the shared memory that is the system's, where cooperative groups meet */
    const char *name;
};

struct group {
    const struct insn *pc;
    uint32_t mask;
};

enum warp_event {
    WARP_RUNS,
    WARP_REGROUP, /* the running group is gone: exited, blocked */
    WARP_YIELD,   /* used up its budget */
    WARP_FAULT,
};

struct range_cache {
    uint64_t start;
    uint64_t size;
    uint64_t generation;
    uint64_t last; /* where the instruction's last row began */
    unsigned access;
};

/* Ranges that a worker has met, by instruction: each tends to stay in one array. */
#define RANGE_CACHES 64
#define MAX_CALL_DEPTH 4096

static inline unsigned range_slot(const struct insn *insn)
{
    return (uintptr_t)insn / sizeof(*insn) % RANGE_CACHES;
}

struct warp {
    unsigned char *regs;
    const struct insn *pc;
    const struct insn *stop; /* the running group waits here for others; NULL once event is set */
    uint32_t active;         /* lanes of the running group */
    uint32_t alive;          /* lanes that exist and have not exited */
    bool full;               /* every lane is active or dead: handlers need not look at the mask */
    enum warp_event event;
    int32_t budget;
    uint32_t carry; /* the condition code's carry flag, a lane a bit */
    struct block *block;
    const struct insn *code;    /* of the program */
    struct range_cache *ranges; /* RANGE_CACHES, the worker's */
    const uint64_t *generation; /* of the space: older ranges say nothing */
    uint64_t local;             /* lane 0's local memory; the others follow at local_stride */
    uint64_t local_stride;
    uint32_t index;
    uint32_t group_count;
    uint32_t at_barrier;        /* lanes that wait at a barrier */
    uint32_t at_sync;           /* lanes that wait for others at a warp-wide instruction */
    uint32_t at_cluster;        /* lanes that wait at the cluster's barrier */
    uint32_t cluster_arrived;   /* lanes that have come to it in this phase */
    const struct insn *last;    /* the group that used up its budget: others first */
    bool forced;                /* a warp-wide instruction must not wait again */
    bool out_of_order;          /* the running group is not the lowest */
    uint32_t *returns; /* LANES entries a level */
    uint32_t returns_capacity;
    uint32_t depth[LANES];
    /* What is above is cleared when a warp starts; what follows is written before it is read. */
    uint32_t lane_on[LANES] __attribute__((aligned(64)));
    uint64_t address[LANES] __attribute__((aligned(64))); /* what a memory access found */
    struct group groups[LANES]; /* lowest program counter last */
    const struct insn *blocked_pc[LANES];
    uint8_t barrier_of[LANES];
};

#define BARRIERS 16
#define MAX_WARPS 32

struct barrier {
    uint32_t expected; /* 0: every thread that is alive */
    uint32_t arrived[MAX_WARPS];
    uint32_t count; /* what bar.red gathers */
    bool any;
    bool not_all;
    bool in_use;
    uint32_t last_count; /* what it found when the barrier opened last */
    bool last_any;
    bool last_all;
};

/* Memory for a block: its struct, warps, register files, local and shared memory. */
struct block_memory {
    unsigned char *bytes;
    size_t size;
    const struct sg_space *space; /* whose data may still be in it */
    uint64_t grid;                /* whose constants are still in it; 0: nobody's */
};

/* What a worker has for its blocks, and keeps for the next ones. */
#define POOL_BLOCKS 128
struct block_pool {
    struct block_memory kept[POOL_BLOCKS];
    unsigned count;
    struct range_cache ranges[RANGE_CACHES];
};

struct block {
    struct grid *grid;
    struct block *lead; /* the cluster's first, from which the others are linked */
    struct block *next;
    uint32_t rank;       /* in the cluster */
    bool cluster_in_use; /* of the lead: somebody has come to the cluster's barrier */
    uint32_t index[3];
    uint32_t warp_count;
    struct warp *warps;
    unsigned char *shared;
    uint32_t shared_size;
    struct block_memory memory;
    struct barrier barriers[BARRIERS];
    uint32_t sm;
};

#define RESERVED_SHARED 1024

/* A launch in flight. */
struct grid {
    struct sg_engine *engine;
    uint64_t number; /* no two grids have the same */
    const struct program *program;
    const struct sg_kernel_info *info;
    struct sg_launch launch;
    unsigned char *params; /* 16 bytes aligned */
    uint32_t cluster[3];
    uint32_t cluster_size; /* blocks that start together */
    uint64_t block_count;
    uint64_t next_block;
    uint64_t started; /* milliseconds, when its first block went to an SM */
    uint32_t running; /* clusters on SMs */
    uint32_t shared_size;
    uint32_t threads_per_block;
    bool stopped; /* a fault or an abort: no more blocks; read without the lock */
    CUresult result;
    char sentence[512];
    struct grid *next;
};

static inline void *reg(struct warp *warp, uint32_t offset)
{
    return warp->regs + offset;
}

static inline uint32_t *pred(struct warp *warp, uint32_t offset)
{
    return (uint32_t *)(warp->regs + offset);
}

#define EACH_ACTIVE_LANE                         \
    for (uint32_t rest = warp->active, lane = 0; \
         rest && (lane = (uint32_t)__builtin_ctz(rest), true); rest &= rest - 1)

/* ---- warp.c ---- */
/* same_grid: the registers are those of another block's warp of this index. */
void warp_start(struct warp *warp, uint32_t lanes, bool same_grid);
void warp_end(struct warp *warp);
/* Runs until the warp exits, blocks, faults or has used up its budget. */
void warp_run(struct warp *warp, int32_t budget);
bool warp_can_run(const struct warp *warp);
void warp_set_active(struct warp *warp, uint32_t mask);
void warp_add_group(struct warp *warp, const struct insn *pc, uint32_t mask);
void warp_leave(struct warp *warp, enum warp_event event);
/* Jumps for some of the active lanes; the others go on. */
void warp_branch(struct warp *warp, const struct insn *target, uint32_t taken);
void warp_exit_lanes(struct warp *warp, uint32_t mask);
/* True when every lane named is here; else the group waits at this instruction (it will run again).
 */
bool warp_converged(struct warp *warp, const struct insn *insn, uint32_t members);

/* ---- engine.c ---- */
unsigned engine_sm_count(const struct sg_engine *engine);

/* ---- locate.c ---- */
#define locate LANE_NAME(locate)
#define locate_given LANE_NAME(locate_given)
#define locate_readable LANE_NAME(locate_readable)
enum locate_result {
    LOCATE_FAULT,
    LOCATE_GLOBAL,
    LOCATE_OWN, /* shared or local: no other host thread can touch it */
};

/*
 * Fills warp->address with where each active lane's `size` bytes are in this process, checked;
 * inactive lanes get the address of some active one. `align` is that of one element.
 */
enum locate_result locate(struct warp *warp, const struct insn *insn, unsigned size, unsigned align,
                          unsigned access);
/* The same for addresses that are in warp->address already, for every lane. */
enum locate_result locate_given(struct warp *warp, const struct insn *insn, unsigned size,
                                unsigned align, unsigned access);
/* One address of a lane, for strings and the like: how many bytes from there on may be read. */
uint64_t locate_readable(struct warp *warp, uint64_t address);

/* The first fault of a grid wins, and ends the others in its space. */
void grid_stop(struct grid *grid, CUresult result, const char *sentence);

/* ---- fault.c ---- */
void warp_fault(struct warp *warp, const struct insn *insn, unsigned lane, CUresult result,
                const char *what, ...) __attribute__((format(printf, 5, 6)));

/* ---- block.c ---- */
/* The blocks of a cluster, most often of one, from number on; NULL when there is no memory.
 */
struct block *cluster_create(struct grid *grid, uint64_t number, uint32_t sm,
                             struct block_pool *pool);
/* Gives the memory back to the pool. */
void cluster_destroy(struct block *lead, struct block_pool *pool);
void block_pool_fini(struct block_pool *pool);
/* Runs every warp that can run for a while. False when all blocks have ended. */
bool cluster_run(struct block *lead);

/* ---- cluster.c ---- */
#define CLUSTER_OFFSET_BITS 24
#define CLUSTER_OFFSET_MASK ((1u << CLUSTER_OFFSET_BITS) - 1)
/* NULL when there are fewer. */
struct block *cluster_block(const struct block *block, uint32_t rank);
/* Whether a generic address is in the shared memory of some block. */
bool cluster_holds(const struct block *block, uint64_t address, uint64_t size);
/* From the shared state space to the generic one, and back. */
uint64_t cluster_generic(const struct block *block, uint64_t address);
uint64_t cluster_shared(const struct block *block, uint64_t address);
/* Opens the cluster's barrier if nobody is missing any more. */
void cluster_recheck(struct block *block);

/* ---- barrier.c ---- */
void barrier_recheck(struct block *block);

/* ---- alloca.c ---- */
/* How far this lane's frames may grow. */
uint32_t stack_room(struct warp *warp, unsigned lane);

/* ---- space.c ---- */
bool space_lookup(struct sg_space *space, uint64_t address, struct range_cache *ret_range);
/* Changes when a range goes; read it with __atomic_load_n. */
const uint64_t *space_generation(const struct sg_space *space);
/* The kernels' malloc and free: 0 when there is no room, false when it was not allocated. */
uint64_t heap_allocate(struct sg_space *space, uint64_t size);
bool heap_release(struct sg_space *space, uint64_t address);

/* ---- special.c ---- */
/* The number of a special register ("%tid.x"), or -1. */
int special_find(const char *name);
bool special_is_wide(unsigned special);
/* Those that change while a warp runs (%clock) must be filled at each use. */
bool special_is_volatile(unsigned special);
/* Those that differ between the blocks of a grid. */
bool special_is_of_block(unsigned special);
/* Those that say where the reserved part of shared memory is. */
bool special_needs_reserved(unsigned special);
void special_fill(struct warp *warp, unsigned special, uint32_t offset);

/* ---- decode.c ---- */
struct program *program_build(struct sg_instance *instance, const struct ptx_module *module,
                              const struct ptx_function *kernel, char *log, size_t log_size,
                              CUresult *ret_result);
/*
 * Whether the kernel can be run, and what it needs: a program without code. `checked`, by function,
 * is kept from kernel to kernel, so that what many of them call is looked at once.
 */
struct program *program_check(const struct ptx_module *module, const struct ptx_function *kernel,
                              bool *checked, char *log, size_t log_size, CUresult *ret_result);
void program_destroy(struct program *program);
