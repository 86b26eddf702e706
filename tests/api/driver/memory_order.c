/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Litmus tests of PTX's memory model: blocks on different multiprocessors access a few words, and
 * what they read must be something that the model allows. Messages, words and vectors that must not
 * be torn, locks, and the classic shapes of two to four threads.
 *
 * What the software GPU cannot show. An x86 CPU reorders nothing but a store with a later load, and
 * dispatching an instruction takes longer than the store buffer needs to drain. So with a fence
 * that does nothing these tests still pass there. They fail when the interpreter itself splits an
 * access, or delays one. A load may be behind a later store (load buffering, causality) or behind a
 * later load (causality, independent reads). Or a store is behind a later atomic (message passing).
 * Threads that share a CPU show it as well, since they sleep between accesses.
 *
 * On a GPU that vectors of plain words are not torn is what hardware does, not what PTX promises;
 * CUB relies on it. For b128 it is promised.
 *
 * That they can fail is a test of its own. With --swapped the shapes run with two accesses of a
 * thread exchanged, as a device that reorders them would have them. Each must be found out.
 *
 * The argument N makes N times as many rounds; --print prints the kernels instead.
 */
#include "side_by_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING(x) #x
#define TEXT(x) STRING(x)
#define CELL 128 /* bytes; a lane's x and y are half of it apart */

static unsigned factor = 1;

#define ST(form, at, value) "st." form ".global.u32 [%" at "], %" value ";\n"
#define LD(form, to, at) "ld." form ".global.u32 %" to ", [%" at "];\n"

/* ---- Shapes of two to four threads, each position once ---- */

#define MAX_ROLES 4
#define POSITIONS 8 /* between two meetings */
#define SHAPE_ROUNDS 128

struct reads {
    uint32_t r[MAX_ROLES][2];
};

/* %x and %y are addresses of zeros, %r0 and %r1 what a thread reads; %one is 1. */
struct shape {
    const char *name;
    unsigned roles;
    const char *code[MAX_ROLES];
    const char *swapped[MAX_ROLES]; /* the same in an order that PTX forbids; NULL: as it is */
    bool (*is_allowed)(const struct reads *reads);
};

static bool one_store_is_first(const struct reads *o)
{
    return o->r[0][0] || o->r[1][0];
}

static bool one_load_is_first(const struct reads *o)
{
    return !o->r[0][0] || !o->r[1][0];
}

static bool message_is_there(const struct reads *o)
{
    return !o->r[1][0] || o->r[1][1];
}

static bool message_is_passed_on(const struct reads *o)
{
    return !o->r[1][0] || !o->r[2][0] || o->r[2][1];
}

static bool readers_agree(const struct reads *o)
{
    return !(o->r[2][0] && !o->r[2][1] && o->r[3][0] && !o->r[3][1]);
}

/* Sometimes between two accesses: others come in between, even on one CPU. */
#define PAUSE                                         \
    "mad.lo.u32 %seed, %seed, 1664525, 1013904223;\n" \
    "setp.lt.s32 %p, %seed, 0;\n@%p nanosleep.u32 40;\n"

#define FENCE_SC "fence.sc.gpu;\n"
#define FENCE "fence.acq_rel.gpu;\n"

static const struct shape shapes[] = {
    {"store buffering, fence.sc",
     2,
     {ST("relaxed.gpu", "x", "one") PAUSE FENCE_SC LD("relaxed.gpu", "r0", "y"),
      ST("relaxed.gpu", "y", "one") PAUSE FENCE_SC LD("relaxed.gpu", "r0", "x")},
     {LD("relaxed.gpu", "r0", "y") PAUSE ST("relaxed.gpu", "x", "one"),
      LD("relaxed.gpu", "r0", "x") PAUSE ST("relaxed.gpu", "y", "one")},
     one_store_is_first},
    {"store buffering, membar",
     2,
     {ST("volatile", "x", "one") PAUSE "membar.gl;\n" LD("volatile", "r0", "y"),
      ST("volatile", "y", "one") PAUSE "membar.sys;\n" LD("volatile", "r0", "x")},
     {LD("volatile", "r0", "y") PAUSE ST("volatile", "x", "one"),
      LD("volatile", "r0", "x") PAUSE ST("volatile", "y", "one")},
     one_store_is_first},
    {"load buffering",
     2,
     {LD("acquire.gpu", "r0", "x") PAUSE ST("release.gpu", "y", "one"),
      LD("acquire.gpu", "r0", "y") PAUSE ST("release.gpu", "x", "one")},
     {ST("release.gpu", "y", "one") PAUSE LD("acquire.gpu", "r0", "x"),
      ST("release.gpu", "x", "one") PAUSE LD("acquire.gpu", "r0", "y")},
     one_load_is_first},
    {"message passing by an exchange",
     2,
     {ST("relaxed.gpu", "x", "one") PAUSE "atom.release.gpu.global.exch.b32 %r0, [%y], %one;\n",
      "atom.acquire.gpu.global.or.b32 %r0, [%y], 0;\n" PAUSE LD("relaxed.gpu", "r1", "x")},
     {"atom.release.gpu.global.exch.b32 %r0, [%y], %one;\n" PAUSE ST("relaxed.gpu", "x", "one")},
     message_is_there},
    {"write to read causality",
     3,
     {ST("relaxed.gpu", "x", "one"),
      LD("acquire.gpu", "r0", "x") PAUSE ST("release.gpu", "y", "one"),
      LD("acquire.gpu", "r0", "y") PAUSE LD("relaxed.gpu", "r1", "x")},
     {NULL, NULL, LD("relaxed.gpu", "r1", "x") PAUSE LD("acquire.gpu", "r0", "y")},
     message_is_passed_on},
    {"independent reads of independent writes",
     4,
     {ST("relaxed.gpu", "x", "one"), ST("relaxed.gpu", "y", "one"),
      LD("relaxed.gpu", "r0", "x") PAUSE FENCE_SC LD("relaxed.gpu", "r1", "y"),
      LD("relaxed.gpu", "r0", "y") PAUSE FENCE_SC LD("relaxed.gpu", "r1", "x")},
     {NULL, NULL, LD("relaxed.gpu", "r1", "y") PAUSE LD("relaxed.gpu", "r0", "x"),
      LD("relaxed.gpu", "r1", "x") PAUSE LD("relaxed.gpu", "r0", "y")},
     readers_agree},
};

static const char shape_registers[] =
    ".reg .b32 %r<2>, %one, %seed, %position;\n.reg .b64 %x, %y, %to;\n";

static const char shape_before[] = "mad.wide.u32 %x, %lane, " TEXT(
    CELL) ", %data;\nadd.u64 %y, %x, 64;\n"
          "mad.wide.u32 %to, %lane, 32, %results;\nmad.wide.u32 %to, %role, 8, %to;\n"
          "mov.u32 %one, 1;\nadd.u32 %seed, %role, 77;\n";

/* The delays are random, so that the threads are not always the same distance apart. */
static void write_shape(const struct shape *shape, bool swapped, char *text)
{
    int n = sprintf(text, "mov.u32 %%position, 0;\nnext:\nmov.u32 %%r0, 0;\nmov.u32 %%r1, 0;\n"
                          "mad.lo.u32 %%seed, %%seed, 1664525, 1013904223;\n"
                          "shr.u32 %%a, %%seed, 28;\ndelay:\nsub.s32 %%a, %%a, 1;\n"
                          "setp.ge.s32 %%p, %%a, 0;\n@%%p bra delay;\n");
    for (unsigned role = 0; role < shape->roles; role++)
        n += sprintf(
            text + n, "setp.ne.u32 %%p, %%role, %u;\n@%%p bra after%u;\n%safter%u:\n", role, role,
            swapped && shape->swapped[role] ? shape->swapped[role] : shape->code[role], role);
    sprintf(text + n,
            "%sst.global.v2.u32 [%%to], {%%r0, %%r1};\nadd.u64 %%x, %%x, %u;\n"
            "add.u64 %%y, %%y, %u;\nadd.u64 %%to, %%to, %u;\n"
            "add.u32 %%position, %%position, 1;\nsetp.lt.u32 %%p, %%position, %u;\n"
            "@%%p bra next;\n",
            PAUSE, LANES * CELL, LANES * CELL, LANES * (unsigned)sizeof(struct reads), POSITIONS);
}

/* How many of the outcomes are forbidden, of how many; false when they could not be had. */
static bool run_shape(const struct shape *shape, bool takes_turns, bool swapped, size_t *ret_wrong,
                      size_t *ret_count)
{
    char each[4096];
    size_t count = (size_t)SHAPE_ROUNDS * POSITIONS * LANES, wrong = 0;
    struct reads *reads = calloc(count, sizeof(*reads));
    void *cells = calloc(count, CELL);

    write_shape(shape, swapped, each);
    struct side_by_side test = {.name = shape->name,
                                .roles = shape->roles,
                                .rounds = SHAPE_ROUNDS,
                                .takes_turns = takes_turns,
                                .registers = shape_registers,
                                .before = shape_before,
                                .each = each};
    bool ran = run_side_by_side(&test, (struct shared_area){cells, count * CELL},
                                (struct shared_area){reads, count * sizeof(*reads)});
    for (size_t i = 0; ran && i < count; i++)
        wrong += !shape->is_allowed(&reads[i]);
    free(reads);
    free(cells);
    *ret_wrong = wrong;
    *ret_count = count;
    return ran;
}

static void check_shape(const struct shape *shape, bool takes_turns)
{
    size_t wrong, count;

    if (!run_shape(shape, takes_turns, false, &wrong, &count))
        return;
    if (wrong)
        printf("%s%s: %zu times of %zu\n", shape->name, takes_turns ? ", in turns" : "", wrong,
               count);
    IS_TRUE(wrong == 0);
}

static void classic_shapes(void)
{
    for (unsigned i = 0; i < factor * (sizeof(shapes) / sizeof(shapes[0])); i++) {
        check_shape(&shapes[i / factor], false);
        check_shape(&shapes[i / factor], true);
    }
}

#define TRIES 100

/* Taking turns, as the threads then are often between each other's accesses on any machine. */
static void swapped_accesses(void)
{
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        size_t wrong = 0, count;
        bool ran = true;
        for (unsigned j = 0; j < TRIES && ran && !wrong; j++)
            ran = run_shape(&shapes[i], true, true, &wrong, &count);
        if (ran && !wrong)
            printf("%s: no thread noticed that accesses were exchanged\n", shapes[i].name);
        IS_TRUE(ran && wrong > 0);
    }
}

/* ---- What keeps on changing ---- */

#define LOOPS 64 /* in each round */

/* Two threads, each in a loop. The second counts in %errors what it must not see. */
struct stream {
    const char *name;
    const char *write; /* %i counts from 1 */
    const char *read;
};

static uint32_t sum_of_words(const uint32_t *words, unsigned count)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

static const char stream_registers[] =
    ".reg .b32 %i, %loop, %errors, %e<4>;\n.reg .b64 %x, %y, %f<2>;\n.reg .b128 %w;\n";
static const char stream_before[] =
    "mad.wide.u32 %x, %lane, " TEXT(CELL) ", %data;\nadd.u64 %y, %x, 64;\nmov.u32 %i, 0;\n"
                                          "mov.u32 %errors, 0;\n";
static const char stream_after[] =
    "setp.eq.u32 %p, %role, 0;\n@%p bra end;\nmad.wide.u32 %la, %lane, 4, %results;\n"
    "st.global.u32 [%la], %errors;\nend:\n";

static void check_stream(const struct stream *stream)
{
    char each[4096];
    uint32_t errors[LANES] = {0};
    static uint32_t cells[LANES * CELL / 4];
    struct side_by_side test = {.name = stream->name,
                                .roles = 2,
                                .rounds = 24 * factor,
                                .registers = stream_registers,
                                .before = stream_before,
                                .each = each,
                                .after = stream_after};

    memset(cells, 0, sizeof(cells));
    snprintf(each, sizeof(each),
             "mov.u32 %%loop, 0;\nloop:\nadd.u32 %%i, %%i, 1;\nsetp.ne.u32 %%p, %%role, 0;\n"
             "@%%p bra reader;\n%sbra both;\nreader:\n%sboth:\nadd.u32 %%loop, %%loop, 1;\n"
             "setp.lt.u32 %%p, %%loop, %d;\n@%%p bra loop;\n",
             stream->write, stream->read, LOOPS);
    if (!run_side_by_side(&test, (struct shared_area){cells, sizeof(cells)},
                          (struct shared_area){errors, sizeof(errors)}))
        return;
    if (sum_of_words(errors, LANES))
        printf("%s: %u times\n", stream->name, sum_of_words(errors, LANES));
    IS_TRUE(sum_of_words(errors, LANES) == 0);
}

/* The second value that is read is of the same time as the first, or of a later one. */
#define NOT_OLDER "setp.lt.u32 %q, %b, %a;\n@%q add.u32 %errors, %errors, 1;\n"

static void messages_in_a_row(void)
{
    static const struct stream streams[] = {
        {"release and acquire", ST("weak", "x", "i") ST("release.gpu", "y", "i"),
         LD("acquire.gpu", "a", "y") LD("relaxed.gpu", "b", "x") NOT_OLDER},
        {"release and acquire in scope sys",
         ST("relaxed.sys", "x", "i") ST("release.sys", "y", "i"),
         LD("acquire.sys", "a", "y") LD("relaxed.sys", "b", "x") NOT_OLDER},
        {"fences", ST("relaxed.gpu", "x", "i") FENCE ST("relaxed.gpu", "y", "i"),
         LD("relaxed.gpu", "a", "y") FENCE LD("relaxed.gpu", "b", "x") NOT_OLDER},
        {"membar and volatile", ST("volatile", "x", "i") "membar.gl;\n" ST("volatile", "y", "i"),
         LD("volatile", "a", "y") "membar.gl;\n" LD("volatile", "b", "x") NOT_OLDER},
        {"addition that releases",
         ST("relaxed.gpu", "x", "i") "red.release.gpu.global.add.u32 [%y], 1;\n",
         LD("acquire.gpu", "a", "y") LD("relaxed.gpu", "b", "x") NOT_OLDER},
        {"one word read twice", ST("relaxed.gpu", "x", "i"),
         LD("relaxed.gpu", "a", "x") LD("relaxed.gpu", "b", "x") NOT_OLDER},
    };
    for (unsigned i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
        check_stream(&streams[i]);
}

/* ---- Vectors ---- */

struct vector {
    const char *type;
    const char *fill;    /* all elements from %i */
    const char *list;    /* the operand */
    const char *compare; /* the elements */
    const char *join, *split;
    unsigned size;
};

#define DIFFER(type, one, other) \
    "setp.ne." type " %q, %" one ", %" other ";\n@%q add.u32 %errors, %errors, 1;\n"
#define FILL_32 "mov.b32 %e0, %i;\nmov.b32 %e1, %i;\nmov.b32 %e2, %i;\nmov.b32 %e3, %i;\n"
#define FILL_64 "cvt.u64.u32 %f0, %i;\ncvt.u64.u32 %f1, %i;\n"

static const struct vector vectors[] = {
    {"b64", "mov.b64 %f0, {%i, %i};\n", "%f0", DIFFER("b32", "e0", "e1"), "",
     "mov.b64 {%e0, %e1}, %f0;\n", 8},
    {"v2.b32", FILL_32, "{%e0, %e1}", DIFFER("b32", "e0", "e1"), "", "", 8},
    {"v4.b32", FILL_32, "{%e0, %e1, %e2, %e3}",
     DIFFER("b32", "e0", "e1") DIFFER("b32", "e0", "e2") DIFFER("b32", "e0", "e3"), "", "", 16},
    {"v2.b64", FILL_64, "{%f0, %f1}", DIFFER("b64", "f0", "f1"), "", "", 16},
    {"b128", FILL_64, "%w", DIFFER("b64", "f0", "f1"), "mov.b128 %w, {%f0, %f1};\n",
     "mov.b128 {%f0, %f1}, %w;\n", 16},
};

static const char *const vector_forms[][2] = {
    {"weak", "weak"},
    {"volatile", "volatile"},
    {"relaxed.gpu", "relaxed.gpu"},
    {"release.gpu", "acquire.gpu"},
    {"relaxed.sys", "acquire.sys"},
};

/* All lanes at one place, in a row, and apart, in turn: the interpreter has a path for each. */
static void check_vector(const struct vector *vector, const char *const forms[2])
{
    char name[64], place[256], write[1024], read[1024];
    struct stream stream = {name, write, read};

    snprintf(name, sizeof(name), "st.%s.%s, ld.%s.%s", forms[0], vector->type, forms[1],
             vector->type);
    snprintf(place, sizeof(place),
             "rem.u32 %%a, %%round, 3;\nmul.lo.u32 %%a, %%a, %u;\n"
             "mad.wide.u32 %%x, %%a, %%lane, %%data;\n",
             vector->size);
    snprintf(write, sizeof(write), "%s%s%sst.%s.global.%s [%%x], %s;\n", place, vector->fill,
             vector->join, forms[0], vector->type, vector->list);
    snprintf(read, sizeof(read), "%sld.%s.global.%s %s, [%%x];\n%s%s", place, forms[1],
             vector->type, vector->list, vector->split, vector->compare);
    check_stream(&stream);
}

static void torn_vectors(void)
{
    for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        for (unsigned j = 0; j < sizeof(vector_forms) / sizeof(vector_forms[0]); j++)
            check_vector(&vectors[i], vector_forms[j]);
    }
}

/* ---- Locks ---- */

#define LOCKED 16 /* times in each round */
#define LOCK_ROUNDS 16

struct lock {
    const char *name;
    unsigned roles;
    const char *enter; /* ends in the label "inside" */
    const char *leave;
};

#define SPIN "setp.ne.u32 %p, %a, 0;\n@%p bra spin;\n"

static const struct lock locks[] = {
    {"cas, exch", 4, "spin:\natom.acquire.gpu.global.cas.b32 %a, [%data], 0, 1;\n" SPIN,
     "atom.release.gpu.global.exch.b32 %a, [%data], 0;\n"},
    {"cas, store", 4, "spin:\natom.acquire.sys.global.cas.b32 %a, [%data], 0, 1;\n" SPIN,
     "mov.u32 %a, 0;\n" ST("release.sys", "data", "a")},
    {"relaxed cas and fences", 4,
     "spin:\natom.relaxed.gpu.global.cas.b32 %a, [%data], 0, 1;\n" SPIN FENCE,
     FENCE "mov.u32 %a, 0;\n" ST("relaxed.gpu", "data", "a")},
    {"cas of 64 bits", 4,
     "spin:\natom.acquire.gpu.global.cas.b64 %la, [%data], 0, 0x100000000;\n"
     "setp.ne.u64 %p, %la, 0;\n@%p bra spin;\n",
     "mov.u64 %la, 0;\nst.release.gpu.global.u64 [%data], %la;\n"},
    {"tickets", 4,
     "atom.relaxed.gpu.global.add.u32 %d, [%data], 1;\nspin:\n"
     "ld.acquire.gpu.global.u32 %a, [%data+4];\nsetp.ne.u32 %p, %a, %d;\n@%p bra spin;\n",
     "add.u32 %d, %d, 1;\nst.release.gpu.global.u32 [%data+4], %d;\n"},
    {"Peterson", 2,
     "xor.b32 %d, %role, 1;\nmov.u32 %a, 1;\nmad.wide.u32 %la, %role, 4, %data;\n"
     "mad.wide.u32 %lb, %d, 4, %data;\nst.relaxed.gpu.global.u32 [%la], %a;\n"
     "st.relaxed.gpu.global.u32 [%data+8], %d;\n" FENCE_SC
     "spin:\nld.acquire.gpu.global.u32 %a, [%lb];\nsetp.eq.u32 %p, %a, 0;\n@%p bra inside;\n"
     "ld.acquire.gpu.global.u32 %a, [%data+8];\nsetp.eq.u32 %p, %a, %d;\n@%p bra spin;\n",
     "mov.u32 %a, 0;\nst.release.gpu.global.u32 [%la], %a;\n"},
};

/* A thread inside adds to two words, which are equal whenever no thread is. */
static void check_lock(const struct lock *lock)
{
    char each[2048];
    uint32_t words[64] = {0}, errors[MAX_ROLES] = {0};
    uint32_t times = lock->roles * LOCK_ROUNDS * factor * LOCKED;
    struct side_by_side test = {
        .name = lock->name,
        .roles = lock->roles,
        .rounds = LOCK_ROUNDS * factor,
        .registers = ".reg .b32 %loop, %errors, %e<2>;\n",
        .before = "mov.u32 %errors, 0;\n",
        .each = each,
        .after = "mad.wide.u32 %la, %role, 4, %results;\nsetp.eq.u32 %p, %lane, 0;\n"
                 "@%p st.global.u32 [%la], %errors;\n",
    };

    snprintf(each, sizeof(each),
             "setp.ne.u32 %%p, %%lane, 0;\n@%%p bra outside;\nmov.u32 %%loop, 0;\nloop:\n%s"
             "inside:\nld.global.u32 %%e0, [%%data+64];\nadd.u32 %%e0, %%e0, 1;\n"
             "st.global.u32 [%%data+64], %%e0;\nld.global.u32 %%e1, [%%data+128];\n"
             "add.u32 %%e1, %%e1, 1;\nst.global.u32 [%%data+128], %%e1;\n"
             "setp.ne.u32 %%q, %%e0, %%e1;\n@%%q add.u32 %%errors, %%errors, 1;\n%s"
             "add.u32 %%loop, %%loop, 1;\nsetp.lt.u32 %%p, %%loop, %d;\n@%%p bra loop;\noutside:\n",
             lock->enter, lock->leave, LOCKED);
    if (!run_side_by_side(&test, (struct shared_area){words, sizeof(words)},
                          (struct shared_area){errors, sizeof(errors)}))
        return;
    bool is_right = words[16] == times && words[32] == times && !sum_of_words(errors, MAX_ROLES);
    if (!is_right)
        printf("lock of %s: %u and %u of %u, %u times unequal\n", lock->name, words[16], words[32],
               times, sum_of_words(errors, MAX_ROLES));
    IS_TRUE(is_right);
}

static void mutual_exclusion(void)
{
    for (unsigned i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
        check_lock(&locks[i]);
}

int main(int argc, char **argv)
{
    side_by_side_prints = argc > 1 && strcmp(argv[1], "--print") == 0;
    bool swaps = argc > 1 && strcmp(argv[1], "--swapped") == 0;
    if (argc > 1 && !side_by_side_prints && !swaps)
        factor = (unsigned)atoi(argv[1]);
    check_open();
    if (swaps) {
        RUN(swapped_accesses);
        return check_close();
    }
    RUN(classic_shapes);
    RUN(messages_in_a_row);
    RUN(torn_vectors);
    RUN(mutual_exclusion);
    return check_close();
}
