/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches by the thousand, queued faster than they run, with all else that a stream can hold
 * between them. Whatever puts them together on the way must keep each one's parameters and place.
 */
#include "check.h"

#include <string.h>

#define STREAMS 3
#define WORDS 64

static CUmodule module;
static CUfunction step, fill, copy;

static void launch_step(CUstream stream, CUdeviceptr word, uint32_t factor, uint32_t value)
{
    uint32_t turns = 0;
    void *parameters[] = {&word, &factor, &value, &turns};

    launch_one(step, stream, parameters);
}

static void launch_fill(CUstream stream, CUdeviceptr words, uint32_t value, uint32_t n)
{
    void *parameters[] = {&words, &value, &n};

    MUST(cuLaunchKernel(fill, 2, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

static void launch_copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, uint32_t n)
{
    void *parameters[] = {&to, &from, &n};

    MUST(cuLaunchKernel(copy, 1, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
}

/* Steps do not commute, so one that is lost, doubled or out of place changes the result. */
static void every_step_in_its_place(void)
{
    CUdeviceptr word = make_words(1, 1);
    uint32_t expected = 1;

    for (uint32_t i = 0; i < 3000; i++) {
        launch_step(NULL, word, 3 + 2 * (i % 5), i);
        expected = expected * (3 + 2 * (i % 5)) + i;
    }
    IS_TRUE(word_at(word) == expected);
    MUST(cuMemFree_v2(word));
}

static void runs_of_every_length(void)
{
    CUdeviceptr word = make_words(1, 1);
    uint32_t expected = 1, value = 0;

    for (uint32_t length = 1; length <= 40; length++) {
        for (uint32_t i = 0; i < length; i++, value++) {
            launch_step(NULL, word, 5, value);
            expected = expected * 5 + value;
        }
        IS_TRUE(word_at(word) == expected);
    }
    MUST(cuMemFree_v2(word));
}

/* The same launch over and over, and then another one. */
static void the_same_again(void)
{
    CUdeviceptr word = make_words(1, 1);
    uint32_t expected = 1;

    for (uint32_t i = 0; i < 640; i++) {
        uint32_t value = i / 160;
        launch_step(NULL, word, 3, value);
        expected = expected * 3 + value;
    }
    IS_TRUE(word_at(word) == expected);
    MUST(cuMemFree_v2(word));
}

struct lane {
    CUstream stream;
    CUdeviceptr word, words, copied;
    uint32_t expected;
};

static void open_lane(struct lane *lane, unsigned flags)
{
    MUST(cuStreamCreate(&lane->stream, flags));
    lane->word = make_words(1, 1);
    lane->words = make_words(WORDS, 0);
    lane->copied = make_words(WORDS, 0);
    lane->expected = 1;
}

static void steps(struct lane *lane, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++) {
        launch_step(lane->stream, lane->word, 7, value + i);
        lane->expected = lane->expected * 7 + value + i;
    }
}

/* Fills, copies the word behind them, and fills with something else. */
static void fills_and_copies(struct lane *lane, uint32_t value)
{
    launch_fill(lane->stream, lane->words, value, WORDS);
    launch_copy(lane->stream, lane->copied, lane->words, WORDS);
    launch_fill(lane->stream, lane->words, value + 1, WORDS);
    MUST(cuMemcpyDtoDAsync_v2(lane->words + 4, lane->copied, 4, lane->stream));
}

static void set_word(struct lane *lane, uint32_t value)
{
    MUST(cuMemsetD32Async(lane->word, value, 1, lane->stream));
    lane->expected = value;
}

/* What the next lane does next, it does after what this one has done. */
static void follow(struct lane *lane, struct lane *next, CUevent event, uint32_t value)
{
    MUST(cuEventRecord(event, lane->stream));
    MUST(cuStreamWaitEvent(next->stream, event, 0));
    MUST(cuMemcpyDtoDAsync_v2(next->word, lane->word, 4, next->stream));
    next->expected = lane->expected;
    steps(next, 1, value);
    MUST(cuEventRecord(event, next->stream));
    MUST(cuStreamWaitEvent(lane->stream, event, 0));
}

static void one_round(struct lane *lanes, CUevent event, uint32_t round)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        steps(&lanes[i], 4 + (round * 5 + i) % 29, round);
        if ((round + i) % 3 == 0)
            fills_and_copies(&lanes[i], round);
        if ((round + i) % 7 == 0)
            set_word(&lanes[i], round);
    }
    if (round % 4 == 0)
        follow(&lanes[round % STREAMS], &lanes[(round + 1) % STREAMS], event, round);
}

static void check_lane(struct lane *lane)
{
    uint32_t words[WORDS], copied[WORDS];

    MUST(cuStreamSynchronize(lane->stream));
    IS_TRUE(word_at(lane->word) == lane->expected);
    MUST(cuMemcpyDtoH_v2(words, lane->words, sizeof(words)));
    MUST(cuMemcpyDtoH_v2(copied, lane->copied, sizeof(copied)));
    IS_TRUE(words[0] == copied[0] + 1 && words[1] == copied[0]);
    IS_TRUE(words[WORDS - 1] == words[0] && copied[WORDS - 1] == copied[0]);
}

static void close_lane(struct lane *lane)
{
    MUST(cuStreamDestroy_v2(lane->stream));
    MUST(cuMemFree_v2(lane->word));
    MUST(cuMemFree_v2(lane->words));
    MUST(cuMemFree_v2(lane->copied));
}

static void among_streams(unsigned flags)
{
    struct lane lanes[STREAMS];
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < STREAMS; i++)
        open_lane(&lanes[i], flags);
    for (uint32_t round = 0; round < 60; round++)
        one_round(lanes, event, round);
    for (unsigned i = 0; i < STREAMS; i++)
        check_lane(&lanes[i]);
    for (unsigned i = 0; i < STREAMS; i++)
        close_lane(&lanes[i]);
    MUST(cuEventDestroy_v2(event));
}

static void among_streams_that_do_not_block(void)
{
    among_streams(CU_STREAM_NON_BLOCKING);
}

static void among_blocking_streams(void)
{
    among_streams(CU_STREAM_DEFAULT);
}

/* Legacy and blocking stream in turns, on the same word. */
static void legacy_and_blocking_in_turns(void)
{
    CUdeviceptr word = make_words(1, 1);
    uint32_t expected = 1;
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    for (uint32_t i = 0; i < 800; i++) {
        launch_step(i / 20 % 2 ? stream : NULL, word, 9, i);
        expected = expected * 9 + i;
    }
    IS_TRUE(word_at(word) == expected);
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(word));
}

/* A module comes and goes while launches of another are queued as before. */
static void a_module_goes(void)
{
    CUdeviceptr word = make_words(1, 1);
    uint32_t expected = 1;

    for (uint32_t round = 0; round < 4; round++) {
        CUmodule other = load_kernels();
        CUfunction mine = step;
        step = get_kernel(other, "step");
        for (uint32_t i = 0; i < 100; i++, expected = expected * 11 + 3)
            launch_step(NULL, word, 11, 3);
        IS_TRUE(word_at(word) == expected);
        MUST(cuModuleUnload(other));
        step = mine;
        for (uint32_t i = 0; i < 50; i++, expected = expected * 11 + 3)
            launch_step(NULL, word, 11, 3);
        IS_TRUE(word_at(word) == expected);
    }
    MUST(cuMemFree_v2(word));
}

int main(void)
{
    check_open();
    module = load_kernels();
    step = get_kernel(module, "step");
    fill = get_kernel(module, "fill");
    copy = get_kernel(module, "copy");
    RUN(every_step_in_its_place);
    RUN(runs_of_every_length);
    RUN(the_same_again);
    RUN(among_streams_that_do_not_block);
    RUN(among_blocking_streams);
    RUN(legacy_and_blocking_in_turns);
    RUN(a_module_goes);
    MUST(cuModuleUnload(module));
    return check_close();
}
