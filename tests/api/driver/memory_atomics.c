/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations of every type and scope, while blocks on different multiprocessors collide in
 * one word. Each check holds whatever the order of the operations, and one that is lost, doubled or
 * wrong breaks it. Old values are checked, not only final ones.
 *
 * In scope cta one block runs alone, as blocks of different scopes would race. On the software GPU
 * one host thread runs a block, so there these checks show wrong arithmetic only.
 *
 * The argument N makes N times as many rounds; --print prints the kernels instead.
 */
#include "side_by_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 8
#define LOOPS 32 /* operations of a thread in each round */
#define MAX_THREADS (2 * LANES)
#define COMPARING_LANES 4
#define WRAP 6 /* the limit of inc and dec */
#define STRING(x) #x
#define TEXT(x) STRING(x)

static unsigned factor = 1;

static const struct order {
    const char *text;
    const char *red; /* which cannot acquire */
    unsigned roles;
} orders[] = {{"relaxed.cta", "relaxed.cta", 1},
              {"relaxed.gpu", "relaxed.gpu", 2},
              {"acq_rel.gpu", "release.gpu", 2},
              {"relaxed.sys", "relaxed.sys", 2}};

struct outcome {
    uint64_t words[8];             /* the first and the third are collided in; the fifth is read */
    uint64_t left[MAX_THREADS][2]; /* %s0 and %s1 of each thread */
};

struct atomic_test {
    const char *name;
    const char *type;
    unsigned size; /* of a register, bytes */
    /* In the texts $ stands for order and scope, & for those of red, # for the type. Registers of
     * the type's size are %t0 to %t3, and of 128 bits %w0 to %w2; %n counts a thread's
     * operations. */
    const char *before;
    const char *each; /* operation */
    const char *after;
    uint64_t base; /* the first and the fifth word at the start */
    bool (*is_right)(const struct atomic_test *test, const struct outcome *outcome,
                     unsigned threads);
};

static uint64_t operations_of(unsigned threads)
{
    return (uint64_t)threads * ROUNDS * factor * LOOPS;
}

static uint64_t sum_of(const struct outcome *outcome, unsigned which)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < MAX_THREADS; i++)
        sum += outcome->left[i][which];
    return sum;
}

static void expand(char *to, const char *from, const struct order *order, const char *type)
{
    for (; from && *from; from++) {
        if (*from == '$')
            to += sprintf(to, "%s", order->text);
        else if (*from == '&')
            to += sprintf(to, "%s", order->red);
        else if (*from == '#')
            to += sprintf(to, "%s", type);
        else
            *to++ = *from;
    }
    *to = '\0';
}

static bool run(const struct atomic_test *test, const struct order *order, struct outcome *outcome)
{
    char name[64], registers[192], before[1024], body[1536], each[2048], after[1024];
    struct side_by_side kernel = {.name = name,
                                  .roles = order->roles,
                                  .rounds = ROUNDS * factor,
                                  .registers = registers,
                                  .before = before,
                                  .each = each,
                                  .after = after};

    snprintf(name, sizeof(name), "%s.%s, %s", test->name, test->type, order->text);
    snprintf(registers, sizeof(registers),
             ".reg .%c%u %%t<4>;\n.reg .u64 %%s<2>;\n.reg .u32 %%n, %%loop;\n.reg .b128 %%w<3>;\n",
             test->type[0] == 'f' && test->size > 2 && !strchr(test->type, 'x') ? 'f' : 'b',
             8 * test->size);
    strcpy(before, "mov.u64 %s0, 0;\nmov.u64 %s1, 0;\nmov.u32 %n, 0;\n");
    expand(before + strlen(before), test->before, order, test->type);
    expand(body, test->each, order, test->type);
    snprintf(each, sizeof(each),
             "mov.u32 %%loop, 0;\nloop:\n%sadd.u32 %%n, %%n, 1;\nadd.u32 %%loop, %%loop, 1;\n"
             "setp.lt.u32 %%p, %%loop, %d;\n@%%p bra loop;\n",
             body, LOOPS);
    expand(after, test->after, order, test->type);
    strcat(after, "mad.lo.u32 %a, %role, 32, %lane;\nmad.wide.u32 %la, %a, 16, %results;\n"
                  "st.global.v2.u64 [%la], {%s0, %s1};\n");
    memset(outcome, 0, sizeof(*outcome));
    outcome->words[0] = outcome->words[4] = test->base;
    return run_side_by_side(&kernel, (struct shared_area){outcome->words, sizeof(outcome->words)},
                            (struct shared_area){outcome->left, sizeof(outcome->left)});
}

static void check(const struct atomic_test *tests, unsigned count)
{
    struct outcome outcome;

    for (unsigned i = 0; i < count * (sizeof(orders) / sizeof(orders[0])); i++) {
        const struct atomic_test *test = &tests[i % count];
        const struct order *order = &orders[i / count];
        if (!run(test, order, &outcome))
            continue;
        bool is_right = test->is_right(test, &outcome, order->roles * LANES);
        if (!is_right)
            printf("%s.%s, %s: words %llx %llx, sums %llu %llu\n", test->name, test->type,
                   order->text, (unsigned long long)outcome.words[0],
                   (unsigned long long)outcome.words[2], (unsigned long long)sum_of(&outcome, 0),
                   (unsigned long long)sum_of(&outcome, 1));
        IS_TRUE(is_right);
    }
}
#define CHECK(tests) check(tests, sizeof(tests) / sizeof((tests)[0]))

/* ---- Additions ---- */

static uint64_t integer_at(const uint64_t *word, const char *type)
{
    float single;
    double wide;

    memcpy(&single, word, sizeof(single));
    memcpy(&wide, word, sizeof(wide));
    return strcmp(type, "f32") == 0   ? (uint64_t)single
           : strcmp(type, "f64") == 0 ? (uint64_t)wide
                                      : *word;
}

/* The old values are 0, 1, 2 and so on, each once. */
static bool counts(const struct atomic_test *test, const struct outcome *outcome, unsigned threads)
{
    uint64_t all = operations_of(threads);

    return sum_of(outcome, 0) == all * (all - 1) / 2 &&
           integer_at(&outcome->words[0], test->type) == all &&
           integer_at(&outcome->words[2], test->type) == all;
}

/* Half of the operations at each word. */
static bool halves_of_lanes_count(const struct atomic_test *test, const struct outcome *outcome,
                                  unsigned threads)
{
    uint64_t each = operations_of(threads) / 2;

    return sum_of(outcome, 0) == each * (each - 1) &&
           integer_at(&outcome->words[0], test->type) == each &&
           integer_at(&outcome->words[2], test->type) == each;
}

/* Even lanes at one word and odd ones at the other: a device may add for lanes that meet at once.
 */
#define SCATTERED_ADDITION                                                                      \
    "and.b32 %a, %lane, 1;\nmad.wide.u32 %la, %a, 16, %data;\natom.$.global.add.# %t1, [%la], " \
    "%t0;\ncvt.u64.# %la, %t1;\nadd.u64 %s0, %s0, %la;\n"

#define ADDITION(convert)                                                           \
    "atom.$.global.add.# %t1, [%data], %t0;\nred.&.global.add.# [%data+16], %t0;\n" \
    "cvt." convert "u64.# %la, %t1;\nadd.u64 %s0, %s0, %la;\n"

static void additions(void)
{
    static const struct atomic_test tests[] = {
        {"add", "u32", 4, "mov.u32 %t0, 1;\n", ADDITION(""), .is_right = counts},
        {"add", "s32", 4, "mov.u32 %t0, 1;\n", ADDITION(""), .is_right = counts},
        {"add", "u64", 8, "mov.u64 %t0, 1;\n", ADDITION(""), .is_right = counts},
        {"scattered add", "u32", 4, "mov.u32 %t0, 1;\n", SCATTERED_ADDITION,
         .is_right = halves_of_lanes_count},
        {"scattered add", "u64", 8, "mov.u64 %t0, 1;\n", SCATTERED_ADDITION,
         .is_right = halves_of_lanes_count},
        {"add", "f32", 4, "mov.f32 %t0, 0f3F800000;\n", ADDITION("rzi."), .is_right = counts},
        {"add", "f64", 8, "mov.f64 %t0, 0d3FF0000000000000;\n", ADDITION("rzi."),
         .is_right = counts},
    };
    CHECK(tests);
}

/* Sums stay small enough to be exact: each thread adds and takes away, and adds once more at last.
 * The two halves hold once and twice the number of threads, 32 or 64. */
static bool halves_count(const struct atomic_test *test, const struct outcome *outcome,
                         unsigned threads)
{
    bool is_bf16 = test->type[0] == 'b';
    uint32_t once = is_bf16 ? 0x4200 : 0x5000, step = is_bf16 ? 0x80 : 0x400;
    uint32_t sum = once + (threads == 64 ? step : 0);

    if (test->size == 4)
        sum |= (sum + step) << 16;
    return outcome->words[0] == sum && outcome->words[2] == sum;
}

#define ADD_HALVES(register)                                                            \
    "atom.$.global.add.noftz.# %t2, [%data], %" register ";\nred.&.global.add.noftz.# " \
                                                         "[%data+16], %" register ";\n"

static void additions_of_halves(void)
{
    static const struct atomic_test tests[] = {
        {"add.noftz", "f16", 2, "mov.b16 %t0, 0x3C00;\nmov.b16 %t1, 0xBC00;\n",
         ADD_HALVES("t0") ADD_HALVES("t1"), ADD_HALVES("t0"), .is_right = halves_count},
        {"add.noftz", "f16x2", 4, "mov.b32 %t0, 0x40003C00;\nmov.b32 %t1, 0xC000BC00;\n",
         ADD_HALVES("t0") ADD_HALVES("t1"), ADD_HALVES("t0"), .is_right = halves_count},
        {"add.noftz", "bf16", 2, "mov.b16 %t0, 0x3F80;\nmov.b16 %t1, 0xBF80;\n",
         ADD_HALVES("t0") ADD_HALVES("t1"), ADD_HALVES("t0"), .is_right = halves_count},
        {"add.noftz", "bf16x2", 4, "mov.b32 %t0, 0x40003F80;\nmov.b32 %t1, 0xC000BF80;\n",
         ADD_HALVES("t0") ADD_HALVES("t1"), ADD_HALVES("t0"), .is_right = halves_count},
    };
    CHECK(tests);
}

/* After k operations 0 to 6 were old values equally often, and then the first of them. */
static bool wraps(const struct atomic_test *test, const struct outcome *outcome, unsigned threads)
{
    uint64_t all = operations_of(threads), sum = all / (WRAP + 1) * (WRAP * (WRAP + 1) / 2);
    uint64_t value = 0;
    bool is_inc = strcmp(test->name, "inc") == 0;

    for (unsigned i = 0; i < all % (WRAP + 1); i++) {
        sum += value;
        value = is_inc ? value + 1 : value == 0 ? WRAP : value - 1;
    }
    return sum_of(outcome, 0) == sum && outcome->words[0] == value && outcome->words[2] == value;
}

#define WRAPPING(op)                                                             \
    "atom.$.global." op                                                          \
    ".# %t1, [%data], " TEXT(WRAP) ";\nred.&.global." op ".# [%data+16], " TEXT( \
        WRAP) ";\ncvt.u64.u32 %la, %t1;\nadd.u64 %s0, %s0, %la;\n"

static void wrapping(void)
{
    static const struct atomic_test tests[] = {
        {"inc", "u32", 4, NULL, WRAPPING("inc"), .is_right = wraps},
        {"dec", "u32", 4, NULL, WRAPPING("dec"), .is_right = wraps},
    };
    CHECK(tests);
}

/* ---- Least and greatest ---- */

/* A thread's values go on in one direction, so an old value that is behind its last was a loss. */
static bool is_last(const struct atomic_test *test, const struct outcome *outcome, unsigned threads)
{
    uint64_t steps = 2 * operations_of(1) - 2 + threads / LANES - 1;
    uint64_t last = strcmp(test->name, "max") == 0 ? test->base + steps : test->base - steps;

    if (test->size == 4)
        last &= 0xffffffff;
    return sum_of(outcome, 0) == 0 && (outcome->words[0] == last);
}

#define EXTREMES "ld.global.# %t3, [%data+32];\nadd.# %t2, %t3, 0;\n"
#define EXTREME(op, direction, is_behind)                                           \
    "add.u32 %a, %n, %n;\nadd.u32 %a, %a, %role;\ncvt.#.u32 %t0, %a;\n" direction   \
    ".# %t0, %t3, %t0;\natom.$.global." op ".# %t1, [%data], %t0;\nsetp." is_behind \
    ".# %q, %t1, %t2;\n@%q add.u64 %s0, %s0, 1;\nadd.# %t2, %t0, 0;\n"
#define MAX EXTREMES, EXTREME("max", "add", "lt")
#define MIN EXTREMES, EXTREME("min", "sub", "gt")

/* The values pass from one sign to the other, which the wrong comparison would not like. */
static void extremes(void)
{
    static const struct atomic_test tests[] = {
        {"max", "u32", 4, MAX, NULL, 0x80000000u - 300, is_last},
        {"max", "s32", 4, MAX, NULL, (uint32_t)-300, is_last},
        {"max", "u64", 8, MAX, NULL, (1ull << 63) - 300, is_last},
        {"max", "s64", 8, MAX, NULL, (uint64_t)-300, is_last},
        {"min", "u32", 4, MIN, NULL, 0x80000000u + 300, is_last},
        {"min", "s32", 4, MIN, NULL, 300, is_last},
        {"min", "u64", 8, MIN, NULL, (1ull << 63) + 300, is_last},
        {"min", "s64", 8, MIN, NULL, 300, is_last},
    };
    CHECK(tests);
}

/* ---- Bits ---- */

/* Each thread owns a bit, which nothing but its own operations may change. */
static bool keeps_bits(const struct atomic_test *test, const struct outcome *outcome,
                       unsigned threads)
{
    return sum_of(outcome, 0) == 0 && outcome->words[0] == 0 && outcome->words[2] == 0;
}

/* 64 threads have a word of 64 bits, or two of 32. */
#define BIT_OF_64                                                                \
    "mad.lo.u32 %a, %role, 32, %lane;\nmov.b64 %t0, 1;\nshl.b64 %t0, %t0, %a;\n" \
    "not.b64 %t3, %t0;\nmov.u64 %lc, %data;\n"
#define BIT_OF_32                                                              \
    "and.b32 %b, %lane, 15;\nmad.lo.u32 %a, %role, 16, %b;\nmov.b32 %t0, 1;\n" \
    "shl.b32 %t0, %t0, %a;\nnot.b32 %t3, %t0;\nand.b32 %b, %lane, 16;\n"       \
    "mad.wide.u32 %lc, %b, 1, %data;\n"
#define CHANGE_BIT(op, value, was)                                                    \
    "atom.$.global." op ".# %t1, [%lc], %" value ";\nand.# %t1, %t1, %t0;\nsetp." was \
    ".# %q, %t1, 0;\n@%q add.u64 %s0, %s0, 1;\n"
#define OR_AND CHANGE_BIT("or", "t0", "ne") CHANGE_BIT("and", "t3", "eq")
#define XOR CHANGE_BIT("xor", "t0", "ne") CHANGE_BIT("xor", "t0", "eq")

static void bits(void)
{
    static const struct atomic_test tests[] = {
        {"or, and", "b32", 4, BIT_OF_32, OR_AND, .is_right = keeps_bits},
        {"or, and", "b64", 8, BIT_OF_64, OR_AND, .is_right = keeps_bits},
        {"xor", "b32", 4, BIT_OF_32, XOR, .is_right = keeps_bits},
        {"xor", "b64", 8, BIT_OF_64, XOR, .is_right = keeps_bits},
    };
    CHECK(tests);
}

/* ---- Exchanges ---- */

/* Threads and the word hold 0, 1, 2 and so on, each once, in any order. */
static bool keeps_tokens(const struct atomic_test *test, const struct outcome *outcome,
                         unsigned threads)
{
    uint64_t n = threads, last = outcome->words[0];

    return sum_of(outcome, 0) + last == n * (n + 1) / 2 &&
           sum_of(outcome, 1) + last * last == n * (n + 1) * (2 * n + 1) / 6;
}

#define TOKEN "mad.lo.u32 %a, %role, 32, %lane;\nadd.u32 %a, %a, 1;\n"
#define LEAVE_TOKEN "mul.lo.u64 %s1, %s0, %s0;\n"
#define EXCHANGE "atom.$.global.exch.# %t0, [%data], %t0;\n"

/* The upper half of 128 bits is three times the lower; an operation on halves would mix them. */
#define CHECK_HALVES(errors)                                                              \
    "mul.lo.u64 %lc, %la, 3;\nsetp.ne.u64 %q, %lb, %lc;\n@%q add.u64 " errors ", " errors \
    ", 0x100000000;\n"

static void exchanges(void)
{
    static const struct atomic_test tests[] = {
        {"exch", "b32", 4, TOKEN "mov.u32 %t0, %a;\n", EXCHANGE,
         "cvt.u64.u32 %s0, %t0;\n" LEAVE_TOKEN, .is_right = keeps_tokens},
        {"exch", "b64", 8, TOKEN "cvt.u64.u32 %t0, %a;\n", EXCHANGE,
         "mov.u64 %s0, %t0;\n" LEAVE_TOKEN, .is_right = keeps_tokens},
        {"exch", "b128", 8,
         TOKEN "cvt.u64.u32 %la, %a;\nmul.lo.u64 %lb, %la, 3;\nmov.b128 %w0, {%la, %lb};\n"
               "mov.u64 %ld, 0;\n",
         "atom.$.global.exch.b128 %w0, [%data], %w0;\nmov.b128 {%la, %lb}, %w0;\n" CHECK_HALVES(
             "%ld"),
         "mov.u64 %s0, %la;\nadd.u64 %s0, %s0, %ld;\n" LEAVE_TOKEN, .is_right = keeps_tokens},
    };
    CHECK(tests);
}

/* ---- Comparisons ---- */

static bool counts_by_comparing(const struct atomic_test *test, const struct outcome *outcome,
                                unsigned threads)
{
    uint64_t all = operations_of(threads) / LANES * COMPARING_LANES;

    if (strcmp(test->type, "b128") == 0)
        return outcome->words[0] == all && outcome->words[1] == 3 * all;
    return outcome->words[0] == (test->size == 2 ? all & 0xffff : all);
}

/* Some lanes count by compare and swap, from what they saw last. What they compare then is what the
 * word never is, and must change nothing. */
#define SOME_LANES "setp.ge.u32 %p, %lane, " TEXT(COMPARING_LANES) ";\n@%p bra other_lanes;\n"
#define COUNT(bits)                                                                          \
    SOME_LANES "retry:\nadd.u" bits " %t2, %t1, 1;\natom.$.global.cas.# %t3, [%data], %t1, " \
               "%t2;\nsetp.ne.b" bits " %q, %t3, %t1;\nmov.b" bits " %t1, %t3;\n"            \
               "@%q bra retry;\natom.$.global.cas.# %t3, [%data], %t0, %t0;\nother_lanes:\n"
#define COUNT_128                                                                            \
    SOME_LANES "retry:\nadd.u64 %ld, %la, 1;\nadd.u64 %s0, %lb, 3;\n"                        \
               "mov.b128 %w0, {%la, %lb};\nmov.b128 %w1, {%ld, %s0};\n"                      \
               "atom.$.global.cas.b128 %w2, [%data], %w0, %w1;\nmov.b128 {%ld, %s0}, %w2;\n" \
               "setp.ne.u64 %q, %la, %ld;\nsetp.ne.or.u64 %q, %lb, %s0, %q;\n"               \
               "mov.u64 %la, %ld;\nmov.u64 %lb, %s0;\n@%q bra retry;\nother_lanes:\n"

static void comparisons(void)
{
    static const struct atomic_test tests[] = {
        {"cas", "b16", 2, "mov.b16 %t0, -1;\nmov.b16 %t1, 0;\n", COUNT("16"),
         .is_right = counts_by_comparing},
        {"cas", "b32", 4, "mov.b32 %t0, -1;\nmov.b32 %t1, 0;\n", COUNT("32"),
         .is_right = counts_by_comparing},
        {"cas", "b64", 8, "mov.b64 %t0, -1;\nmov.b64 %t1, 0;\n", COUNT("64"),
         .is_right = counts_by_comparing},
        {"cas", "b128", 8, "mov.u64 %la, 0;\nmov.u64 %lb, 0;\n", COUNT_128,
         .is_right = counts_by_comparing},
    };
    CHECK(tests);
}

int main(int argc, char **argv)
{
    side_by_side_prints = argc > 1 && strcmp(argv[1], "--print") == 0;
    if (argc > 1 && !side_by_side_prints)
        factor = (unsigned)atoi(argv[1]);
    check_open();
    RUN(additions);
    RUN(additions_of_halves);
    RUN(wrapping);
    RUN(extremes);
    RUN(bits);
    RUN(exchanges);
    RUN(comparisons);
    return check_close();
}
