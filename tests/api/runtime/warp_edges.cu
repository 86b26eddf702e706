// SPDX-License-Identifier: Apache-2.0
// Results of shuffles, votes, matches and reductions at the edges. Sources are inactive by
// divergence or predication, have exited, are not among the members, or lie beyond the end of a
// partial last warp. Every clamp, every width and predicate outputs are tried.
//
// Each case makes one line; the lines of each instruction must be those of an H100, of which a hash
// is kept here. Lane l offers the value 100 + l (matches: see the case); the destination holds
// 7000 + l before. A lane that does not execute the instruction prints "-".
//
// With the argument "lines" the program prints the lines, and says nothing of hashes. With "risky"
// also cases that PTX leaves undefined and where a GPU may hang.
#include "check.cuh"

#include <cstdarg>

enum op {
    SHFL_UP,
    SHFL_DOWN,
    SHFL_BFLY,
    SHFL_IDX,
    VOTE_ALL,
    VOTE_ANY,
    VOTE_UNI,
    BALLOT,
    MATCH_ANY32,
    MATCH_ANY64,
    MATCH_ALL32,
    MATCH_ALL64,
    REDUX_ADD,
    REDUX_UMIN,
    REDUX_UMAX,
    REDUX_SMIN,
    REDUX_SMAX,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR,
    ACTIVEMASK,
    ELECT,
    OPS,
};

static const char *const op_names[OPS] = {
    "shfl.up",       "shfl.down",     "shfl.bfly", "shfl.idx",      "vote.all",
    "vote.any",      "vote.uni",      "ballot",    "match.any.b32", "match.any.b64",
    "match.all.b32", "match.all.b64", "redux.add", "redux.min.u32", "redux.max.u32",
    "redux.min.s32", "redux.max.s32", "redux.and", "redux.or",      "redux.xor",
    "activemask",    "elect",
};

enum kind {
    BRANCH,     // the others are on the other side of a branch
    PREDICATED, // the instruction has a guard
    EXITED,     // the others have exited
    FRESH,      // BRANCH, and the value is computed behind the branch
    BOTH_SIDES, // the others execute the same instruction elsewhere
    KINDS,
};
static const char *const kind_names[KINDS] = {"branch", "guard", "exited", "fresh", "both"};

struct lane_input {
    uint32_t value, by, clamp, members, on;
};
struct lane_output {
    uint32_t ran, d, p;
};

// guard is 1 except where the instruction is predicated.
#define GUARDED(text)                                                             \
    "{\n .reg .pred g, q;\n setp.ne.u32 g, %5, 0;\n setp.ne.u32 q, %1, 0;\n" text \
    "\n @g selp.u32 %1, 1, 0, q;\n}\n"
#define OPERANDS                                                           \
    : "+r"(d), "+r"(p)                                                                \
    : "r"(value), "r"(by), "r"(clamp), "r"(guard), "r"(members), "l"(wide)            \
    : "memory"
#define PLAIN(text)                                                        \
    if (!PREDICATE)                                                        \
        asm volatile("{\n .reg .pred g, q;\n setp.ne.u32 q, %1, 0;\n" text \
                     "\n selp.u32 %1, 1, 0, q;\n}\n" OPERANDS);            \
    else
#define EMIT(op, text)                                          \
    case op:                                                    \
        PLAIN(text) asm volatile(GUARDED("@g " text) OPERANDS); \
        break;
#define EMIT_IN(op, in, text)                                                                  \
    case op:                                                                                   \
        if (!PREDICATE)                                                                        \
            asm volatile("{\n .reg .pred q, v;\n " in "\n" text                                \
                         "\n selp.u32 %1, 1, 0, q;\n}\n" OPERANDS);                            \
        else                                                                                   \
            asm volatile(                                                                      \
                "{\n .reg .pred g, q, v;\n setp.ne.u32 g, %5, 0;\n setp.ne.u32 q, %1, 0;\n" in \
                "\n @g " text "\n @g selp.u32 %1, 1, 0, q;\n}\n" OPERANDS);                    \
        break;
#define ODD "setp.ne.u32 v, %4, 0;"

template <int OP, bool PREDICATE>
static __device__ __forceinline__ void run_op(uint32_t value, uint32_t by, uint32_t clamp,
                                              uint32_t members, uint32_t guard, uint32_t &d,
                                              uint32_t &p)
{
    uint64_t wide = (uint64_t)value << 32 | value;
    switch (OP) {
        EMIT(SHFL_UP, "shfl.sync.up.b32 %0|q, %2, %3, %4, %6;")
        EMIT(SHFL_DOWN, "shfl.sync.down.b32 %0|q, %2, %3, %4, %6;")
        EMIT(SHFL_BFLY, "shfl.sync.bfly.b32 %0|q, %2, %3, %4, %6;")
        EMIT(SHFL_IDX, "shfl.sync.idx.b32 %0|q, %2, %3, %4, %6;")
        EMIT_IN(VOTE_ALL, ODD, "vote.sync.all.pred q, v, %6;")
        EMIT_IN(VOTE_ANY, ODD, "vote.sync.any.pred q, v, %6;")
        EMIT_IN(VOTE_UNI, ODD, "vote.sync.uni.pred q, v, %6;")
        EMIT_IN(BALLOT, "setp.ne.u32 q, %1, 0; " ODD, "vote.sync.ballot.b32 %0, v, %6;")
        EMIT(MATCH_ANY32, "match.any.sync.b32 %0, %2, %6;")
        EMIT(MATCH_ANY64, "match.any.sync.b64 %0, %7, %6;")
        EMIT(MATCH_ALL32, "match.all.sync.b32 %0|q, %2, %6;")
        EMIT(MATCH_ALL64, "match.all.sync.b64 %0|q, %7, %6;")
        EMIT(REDUX_ADD, "redux.sync.add.u32 %0, %2, %6;")
        EMIT(REDUX_UMIN, "redux.sync.min.u32 %0, %2, %6;")
        EMIT(REDUX_UMAX, "redux.sync.max.u32 %0, %2, %6;")
        EMIT(REDUX_SMIN, "redux.sync.min.s32 %0, %2, %6;")
        EMIT(REDUX_SMAX, "redux.sync.max.s32 %0, %2, %6;")
        EMIT(REDUX_AND, "redux.sync.and.b32 %0, %2, %6;")
        EMIT(REDUX_OR, "redux.sync.or.b32 %0, %2, %6;")
        EMIT(REDUX_XOR, "redux.sync.xor.b32 %0, %2, %6;")
        EMIT(ACTIVEMASK, "activemask.b32 %0;")
        EMIT(ELECT, "elect.sync %0|q, %6;")
    }
}

template <int OP, int KIND>
__global__ void probe(const lane_input *in, lane_output *out, int first, int rounds)
{
    int lane = (int)threadIdx.x - first;
    lane_input mine = in[threadIdx.x & 31];
    uint32_t d = 7000 + (threadIdx.x & 31), p = 0;
    if (lane < 0)
        mine.on = 1;
    if (KIND == EXITED && !mine.on)
        return;
    if (KIND == PREDICATED) {
        run_op<OP, true>(mine.value, mine.by, mine.clamp, mine.members, mine.on, d, p);
    } else if (KIND == EXITED || mine.on) {
        for (int i = 0; i < rounds; i++) {
            uint32_t value = mine.value;
            if (KIND == FRESH)
                asm volatile("mad.lo.u32 %0, %1, 3, 10000;" : "=r"(value) : "r"(mine.value));
            run_op<OP, false>(value, mine.by, mine.clamp, mine.members, 1, d, p);
        }
    } else if (KIND == BOTH_SIDES) {
        for (int i = 0; i < rounds; i++) {
            run_op<OP, false>(mine.value + 1000, mine.by, mine.clamp, mine.members, 1, d, p);
            d += 100000;
        }
    }
    if (lane >= 0 && (mine.on || KIND == BOTH_SIDES))
        out[lane] = {1, d, p};
}

struct probe_case {
    int op, kind;
    unsigned threads;
    lane_input in[32];
    char text[96];
};

// What an H100 printed on 2026-11-22: FNV-1a of all lines of the instruction.
static const struct {
    unsigned cases;
    uint64_t hash;
} h100[OPS] = {
    {387, 0x1aa979d152701891ull}, // shfl.up
    {387, 0x3922c9eb427b8f16ull}, // shfl.down
    {387, 0x0806b38459f1ee97ull}, // shfl.bfly
    {387, 0xb1f9b8717e5f00b0ull}, // shfl.idx
    {100, 0x3e54909ef84589fcull}, // vote.all
    {100, 0x36f950a2c957ecd8ull}, // vote.any
    {100, 0x1e2ec7a21fc2eb26ull}, // vote.uni
    {100, 0x005127548471f872ull}, // ballot
    {100, 0x03a394ab364033eeull}, // match.any.b32
    {100, 0x3e7eeb43fe14029cull}, // match.any.b64
    {100, 0x15c52cda478fbcb7ull}, // match.all.b32
    {100, 0xc46a95f96e398a85ull}, // match.all.b64
    {100, 0x8770393b28ff9605ull}, // redux.add
    {100, 0x9e29b84e63f20947ull}, // redux.min.u32
    {100, 0x2b2babc797b7a9f7ull}, // redux.max.u32
    {100, 0x69b8f411f5616c94ull}, // redux.min.s32
    {100, 0x502c9a626a9c0739ull}, // redux.max.s32
    {100, 0x387419bb6e833b28ull}, // redux.and
    {100, 0x94de7adaebe18ee7ull}, // redux.or
    {100, 0x7223e2013b1d43eeull}, // redux.xor
    {20, 0xdca64a11c89e52f2ull},  // activemask
    {20, 0x841e4f3ce94c03a6ull},  // elect
};

static bool shows_lines;
static char line[1024];
static unsigned cases[OPS];
static uint64_t hashes[OPS];

static void write_line(const char *format, ...)
{
    size_t length = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + length, sizeof(line) - length, format, arguments);
    va_end(arguments);
}

static void end_line(int op)
{
    uint64_t hash = cases[op] ? hashes[op] : 0xcbf29ce484222325ull;
    for (const char *c = line; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    hashes[op] = hash;
    cases[op]++;
    if (shows_lines)
        fputs(line, stdout);
    line[0] = '\0';
}

static lane_input *device_in;
static lane_output *device_out;

template <int OP, int KIND> static void launch(const probe_case *c)
{
    unsigned first = (c->threads - 1) / 32 * 32;
    probe<OP, KIND><<<1, c->threads>>>(device_in, device_out, (int)first, 1);
}

template <int OP> static void launch_kind(const probe_case *c)
{
    switch (c->kind) {
    case BRANCH:
        launch<OP, BRANCH>(c);
        break;
    case PREDICATED:
        launch<OP, PREDICATED>(c);
        break;
    case EXITED:
        launch<OP, EXITED>(c);
        break;
    case FRESH:
        launch<OP, FRESH>(c);
        break;
    default:
        launch<OP, BOTH_SIDES>(c);
        break;
    }
}

template <int OP> static void launch_op(const probe_case *c)
{
    if (c->op == OP)
        launch_kind<OP>(c);
    else
        launch_op<OP + 1>(c);
}
template <> void launch_op<OPS>(const probe_case *)
{
}

static void print_values(const lane_output *out)
{
    bool same = true;
    const lane_output *first = NULL;
    for (int lane = 0; lane < 32; lane++) {
        if (!out[lane].ran)
            continue;
        first = first ? first : &out[lane];
        same = same && out[lane].d == first->d;
    }
    if (first && same) {
        write_line(" all=0x%x", first->d);
        return;
    }
    for (int lane = 0; lane < 32; lane++) {
        if (out[lane].ran)
            write_line(" %u", out[lane].d);
        else
            write_line(" -");
    }
}

static void show(const probe_case *c)
{
    lane_output out[32];
    uint32_t ran = 0, p = 0, on = 0;
    MUST(cudaMemcpy(device_in, c->in, sizeof(c->in), cudaMemcpyHostToDevice));
    MUST(cudaMemset(device_out, 0, sizeof(out)));
    for (int lane = 0; lane < 32; lane++)
        on |= (uint32_t)(c->in[lane].on != 0) << lane;
    write_line("%s %s threads=%u on=%08x %s:", op_names[c->op], kind_names[c->kind], c->threads, on,
               c->text);
    launch_op<0>(c);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(out, device_out, sizeof(out), cudaMemcpyDeviceToHost));
    for (int lane = 0; lane < 32; lane++) {
        ran |= (out[lane].ran ? 1u : 0) << lane;
        p |= (out[lane].p ? 1u : 0) << lane;
    }
    print_values(out);
    write_line(" p=%08x ran=%08x\n", p, ran);
    end_line(c->op);
}

static probe_case make_case(int op, int kind, unsigned threads, uint32_t on)
{
    probe_case c = {};
    c.op = op;
    c.kind = kind;
    c.threads = threads;
    for (int lane = 0; lane < 32; lane++)
        c.in[lane] = {100u + lane, 0, 0x1f, on, on >> lane & 1};
    return c;
}

// ---- Shuffles ----

static void set_shuffle(probe_case *c, uint32_t by, uint32_t clamp, uint32_t members)
{
    for (int lane = 0; lane < 32; lane++) {
        c->in[lane].by = by;
        c->in[lane].clamp = clamp;
        c->in[lane].members = members;
    }
    snprintf(c->text, sizeof(c->text), "by=%u clamp=%04x members=%08x", by, clamp, members);
}

static void shuffle(int op, int kind, unsigned threads, uint32_t on, uint32_t by, uint32_t clamp,
                    uint32_t members)
{
    probe_case c = make_case(op, kind, threads, on);
    set_shuffle(&c, by, clamp, members);
    show(&c);
}

static uint32_t clamp_of(int op, unsigned width)
{
    return (32 - width) << 8 | (op == SHFL_UP ? 0 : 0x1f);
}

// Every width and distance with a full warp, odd clamps and distances beyond five bits among them.
static void full_warp_shuffles()
{
    static const uint32_t distances[] = {0, 1, 2, 5, 8, 15, 16, 31, 32, 33, 0x80000001, 0xffffffff};
    static const uint32_t odd_clamps[] = {0x0000, 0x0003, 0x0007,     0x0010,     0x001e,
                                          0x1800, 0x1803, 0x1c1c,     0x1f1f,     0x1f00,
                                          0x0a0b, 0x0102, 0xffffffff, 0xffffe0e0, 0x1c5f};
    for (int op = SHFL_UP; op <= SHFL_IDX; op++) {
        for (unsigned width = 32; width > 0; width /= 2) {
            for (uint32_t by : distances)
                shuffle(op, BRANCH, 32, 0xffffffff, by, clamp_of(op, width), 0xffffffff);
        }
        for (uint32_t clamp : odd_clamps) {
            for (uint32_t by : {1u, 6u, 17u})
                shuffle(op, BRANCH, 32, 0xffffffff, by, clamp, 0xffffffff);
        }
    }
}

// Distances and clamps that differ between the lanes.
static void uneven_shuffles()
{
    for (int op = SHFL_UP; op <= SHFL_IDX; op++) {
        for (uint32_t seed = 1; seed <= 4; seed++) {
            probe_case c = make_case(op, BRANCH, 32, seed & 1 ? 0xffffffff : 0x7e7e7e7e);
            uint32_t state = seed * 2654435761u;
            for (int lane = 0; lane < 32; lane++) {
                state = state * 1664525u + 1013904223u;
                c.in[lane].by = state >> 16 & 0x3f;
                c.in[lane].clamp = seed > 2 ? state >> 8 & 0x1f1f : clamp_of(op, 32);
            }
            snprintf(c.text, sizeof(c.text), "uneven seed=%u", seed);
            show(&c);
        }
    }
}

// The source is inactive, has exited, or is not among the members.
static void partial_shuffles()
{
    static const uint32_t masks[] = {0x0000ffff, 0xffff0000, 0x55555555, 0x00000001,
                                     0x80000000, 0x0000000f, 0x0ff00ff0, 0x7fffffff};
    static const uint32_t distances[] = {0, 1, 3, 8, 16, 31};
    for (int op = SHFL_UP; op <= SHFL_IDX; op++) {
        for (int kind = BRANCH; kind <= FRESH; kind++) {
            for (uint32_t mask : masks) {
                for (uint32_t by : distances)
                    shuffle(op, kind, 32, mask, by, clamp_of(op, 32), mask);
            }
            shuffle(op, kind, 32, 0x0000ffff, 4, clamp_of(op, 8), 0x0000ffff);
            shuffle(op, kind, 32, 0x33333333, 2, clamp_of(op, 8), 0x33333333);
            shuffle(op, kind, 32, 0x33333333, 2, clamp_of(op, 4), 0x33333333);
        }
        // Members that have exited need not come.
        for (uint32_t by : distances) {
            shuffle(op, EXITED, 32, 0x0000ffff, by, clamp_of(op, 32), 0xffffffff);
            shuffle(op, EXITED, 32, 0x55555555, by, clamp_of(op, 32), 0xffffffff);
        }
    }
}

// Beyond the end of a partial last warp.
static void partial_warps()
{
    for (int op = SHFL_UP; op <= SHFL_IDX; op++) {
        for (unsigned threads : {20u, 52u, 1u, 33u}) {
            uint32_t exist = (uint32_t)((1ull << ((threads - 1) % 32 + 1)) - 1);
            for (uint32_t by : {1u, 4u, 16u, 25u, 31u}) {
                shuffle(op, BRANCH, threads, exist, by, clamp_of(op, 32), 0xffffffff);
                shuffle(op, BRANCH, threads, exist, by, clamp_of(op, 32), exist);
            }
        }
    }
}

// Two tiles execute one instruction, each naming its own lanes, and read from the other tile.
static void tiles()
{
    for (int op = SHFL_UP; op <= SHFL_IDX; op++) {
        for (uint32_t by : {0u, 1u, 8u, 16u, 20u}) {
            probe_case c = make_case(op, BRANCH, 32, 0xffffffff);
            set_shuffle(&c, by, clamp_of(op, 32), 0);
            for (int lane = 0; lane < 32; lane++)
                c.in[lane].members = lane < 16 ? 0xffff : 0xffff0000;
            snprintf(c.text, sizeof(c.text), "by=%u tiles of 16", by);
            show(&c);
            for (int lane = 0; lane < 32; lane++)
                c.in[lane].members = 0x11111111u << lane % 4;
            snprintf(c.text, sizeof(c.text), "by=%u four interleaved tiles", by);
            show(&c);
        }
    }
}

// ---- Votes, matches, reductions ----

enum pattern { ZEROS, ONES, QUARTERS, ONE_DIFFERS, NEGATIVE, PATTERNS };
static const char *const pattern_names[] = {"zeros", "ones", "quarters", "one-differs", "negative"};

static uint32_t pattern_value(int pattern, int lane)
{
    switch (pattern) {
    case ZEROS:
        return 0;
    case ONES:
        return 1;
    case QUARTERS:
        return (uint32_t)lane / 4 * 3;
    case ONE_DIFFERS:
        return lane == 9 ? 0 : 5;
    default:
        return lane % 3 ? 0x80000000u + lane : 1000u - lane;
    }
}

static void together(int op, int kind, unsigned threads, uint32_t on, uint32_t members, int pattern)
{
    probe_case c = make_case(op, kind, threads, on);
    for (int lane = 0; lane < 32; lane++) {
        c.in[lane].value = pattern_value(pattern, lane);
        c.in[lane].clamp = c.in[lane].value;
        c.in[lane].members = members;
    }
    snprintf(c.text, sizeof(c.text), "%s members=%08x", pattern_names[pattern], members);
    show(&c);
}

static void votes_and_reductions()
{
    static const uint32_t masks[] = {0xffffffff, 0x0000ffff, 0xfffff000, 0x55555555, 0x00000200};
    for (int op = VOTE_ALL; op < OPS; op++) {
        int last = op >= ACTIVEMASK ? ZEROS : NEGATIVE;
        for (int kind = BRANCH; kind <= EXITED; kind++) {
            for (uint32_t mask : masks) {
                for (int pattern = ZEROS; pattern <= last; pattern++)
                    together(op, kind, 32, mask, mask, pattern);
            }
        }
        for (int pattern = ZEROS; pattern <= last; pattern++) {
            together(op, EXITED, 32, 0x0000ffff, 0xffffffff, pattern);
            together(op, EXITED, 32, 0x55555555, 0xffffffff, pattern);
            together(op, BRANCH, 20, 0x000fffff, 0xffffffff, pattern);
            together(op, BRANCH, 52, 0x000fffff, 0xffffffff, pattern);
            together(op, BRANCH, 33, 0x00000001, 0xffffffff, pattern);
        }
    }
}

// ---- What PTX leaves undefined, and where a GPU might hang ----

static void risky()
{
    puts("risky");
    for (int op = 0; op < OPS; op++) {
        // Lanes that execute the instruction without being among its members.
        if (op <= SHFL_IDX) {
            shuffle(op, BRANCH, 32, 0xffffffff, 3, clamp_of(op, 32), 0x0000ffff);
            shuffle(op, BRANCH, 32, 0xffffffff, 16, clamp_of(op, 32), 0xff00ff00);
        } else {
            together(op, BRANCH, 32, 0xffffffff, 0x0000ffff, QUARTERS);
            together(op, BRANCH, 32, 0xffffffff, 0xff00ff00, NEGATIVE);
        }
    }
    for (int op = 0; op < OPS; op++) {
        // Every lane is a member, and the halves execute the instruction at different places.
        if (op <= SHFL_IDX)
            shuffle(op, BOTH_SIDES, 32, 0x0000ffff, 16, clamp_of(op, 32), 0xffffffff);
        else
            together(op, BOTH_SIDES, 32, 0x0000ffff, 0xffffffff, QUARTERS);
    }
}

static void compare(int op)
{
    bool same = cases[op] == h100[op].cases && hashes[op] == h100[op].hash;
    printf("%s: %u cases %s\n", op_names[op], cases[op], same ? "as on an H100" : "DIFFER");
    IS_TRUE(same);
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    bool is_risky = strcmp(wanted, "risky") == 0;
    shows_lines = is_risky || strcmp(wanted, "lines") == 0;
    MUST(cudaMalloc(&device_in, 32 * sizeof(lane_input)));
    MUST(cudaMalloc(&device_out, 32 * sizeof(lane_output)));
    full_warp_shuffles();
    uneven_shuffles();
    partial_shuffles();
    partial_warps();
    tiles();
    votes_and_reductions();
    for (int op = 0; op < OPS && !shows_lines; op++)
        compare(op);
    if (is_risky)
        risky();
    return check_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
