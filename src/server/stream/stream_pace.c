/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_pace.h. */
#include "stream_pace.h"

#include <time.h>

#include "calm.h"
#include "clock.h"
#include "long_work.h"
#include "sm_share.h"
#include "spare_events.h"
#include "stream_state.h"

/* Before anything is known of a stream's work, which may be kernels of a second each. */
#define LIMIT_FIRST 4
#define LIMIT_MIN 2
#define LIMIT_MAX PACE_PIECES_MAX

/* In one of several streams that a program fills one after the other: at least eight pieces. */
#define SEVERAL_TIMES 4

/* What a stream gets whose pieces took little time, all in all, but of which none was watched. */
#define LIMIT_SUPPOSED 64
#define STEP_FIRST 8
#define STEP_UNKNOWN 2
#define MARKS_WANTED 4 /* in flight: while one is awaited, the stream has work up to the others */

/* The work in flight may wait for what the client gives another stream, or for the client itself.
 * So after this time without progress it may run twice as far ahead. */
#define PATIENCE_NS (2 * NS_PER_SEC)

/* A mark is looked at a few times in the time that it takes: each look takes the driver's lock. */
#define LOOKS_AT_MARK 4
#define PAUSE_NS_MIN (20 * NS_PER_US)
#define PAUSE_NS_MAX (1 * NS_PER_MS)
#define HELD_PAUSE_NS (100 * NS_PER_US)

/* One part in so many of the average is replaced by a new time. */
#define WEIGHT 4

static void set_limit(struct stream_pace *pace, uint64_t limit)
{
    pace->limit = limit > LIMIT_MAX ? LIMIT_MAX : limit < LIMIT_MIN ? LIMIT_MIN : (int32_t)limit;
    pace->batch = pace->limit / 2 < PACE_BATCH_MAX ? pace->limit / 2 : PACE_BATCH_MAX;
}

void stream_pace_init(struct stream *stream)
{
    bool is_free = stream->session->server->streams->no_pace;

    set_limit(&stream->pace, is_free ? PACE_PIECES_MAX : LIMIT_FIRST);
    stream->pace.row = LIMIT_MAX;
}

/* ---- marks ---- */

static void forget_first(struct stream *stream)
{
    struct stream_pace *pace = &stream->pace;

    spare_event_keep(stream->device, pace->marks[pace->first].event);
    pace->in_flight -= pace->marks[pace->first].pieces;
    pace->first = (pace->first + 1) % PACE_MARKS_MAX;
    pace->count--;
}

void stream_pace_end(struct stream *stream)
{
    while (stream->pace.count)
        forget_first(stream);
    stream->pace.in_flight = 0;
    stream->pace.passed_at = 0;
}

/* Where there are too many, the last one moves behind the new pieces. */
static void add_mark(struct stream *stream, int32_t pieces)
{
    struct stream_pace *pace = &stream->pace;
    bool moves = pace->count == PACE_MARKS_MAX;
    unsigned last = (pace->first + pace->count - moves) % PACE_MARKS_MAX;

    if (!moves) {
        if (spare_event_take(stream->device, &pace->marks[last].event) != CUDA_SUCCESS)
            return;
        pace->marks[last].pieces = 0;
        pace->count++;
    }
    pace->marks[last].pieces += pieces;
    pace->in_flight += pieces;
    driver.cuEventRecord(pace->marks[last].event, stream->driver);
}

static void learn(struct stream_pace *pace, uint64_t piece_ns)
{
    uint64_t known = pace->piece_ns, most = 2 * (uint64_t)pace->limit;

    pace->piece_ns = known ? known - known / WEIGHT + piece_ns / WEIGHT : piece_ns;
    uint64_t limit = PACE_AHEAD_NS / (pace->piece_ns + 1);
    set_limit(pace, limit < most ? limit : most);
}

/* The stream has done these pieces in that time, in which it may have been idle. */
static void suppose(struct stream_pace *pace, uint64_t took, int32_t pieces)
{
    if (!pace->piece_ns && took < PACE_AHEAD_NS / LIMIT_SUPPOSED * (uint64_t)pieces)
        set_limit(pace, LIMIT_SUPPOSED);
}

/* Partners: streams_progressed_at(), has_more_to_come() in long_work.c. */
static void note_progress(const struct stream *stream, uint64_t now)
{
    struct session_streams *streams = stream->session->streams;

    atomic_store_explicit(&streams->progressed_at, now, memory_order_relaxed);
    if (stream->pace.piece_ns >= LONG_WORK_NS)
        atomic_store_explicit(&streams->long_piece_at, now, memory_order_relaxed);
}

/* The thread may have slept for long before it looked, so that it knows only when the stream had
 * not come to a mark yet, and when it had. What takes at least longer or at most less than was
 * known counts. */
static void learn_between(struct stream_pace *pace, uint64_t before, uint64_t now, int32_t pieces)
{
    uint64_t least = (before - pace->passed_at) / (uint64_t)pieces;
    uint64_t most = (now - pace->passed_after) / (uint64_t)pieces;

    if (least > pace->piece_ns)
        learn(pace, least);
    else if (!pace->piece_ns || most < pace->piece_ns)
        learn(pace, most);
}

/* Forgets the marks to which the stream has come by `now`; the first of them was still to come at
 * `before`, or that is 0. Whether there were some. */
static bool take_passed(struct stream *stream, uint64_t before, uint64_t now)
{
    struct stream_pace *pace = &stream->pace;
    int32_t in_flight = pace->in_flight;

    while (pace->count &&
           driver.cuEventQuery(pace->marks[pace->first].event) != CUDA_ERROR_NOT_READY)
        forget_first(stream);
    if (in_flight == pace->in_flight)
        return false;
    if (before && pace->passed_at)
        learn_between(pace, before, now, in_flight - pace->in_flight);
    pace->passed_after = before;
    pace->passed_at = before ? now : 0;
    note_progress(stream, now);
    return true;
}

/* ---- waiting ---- */

static bool is_sought(const struct server *server)
{
    return atomic_load_explicit(&server->streams->seekers, memory_order_relaxed) != 0;
}

void stream_pace_seek(struct server *server)
{
    atomic_fetch_add_explicit(&server->streams->seekers, 1, memory_order_relaxed);
}

void stream_pace_seek_end(struct server *server)
{
    atomic_fetch_sub_explicit(&server->streams->seekers, 1, memory_order_relaxed);
}

static int32_t more_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* One more than a row, so that the last piece is not waited for before the next stream gets some.
 */
static int32_t limit_of_several(const struct stream_pace *pace)
{
    int32_t row = more_of(pace->row, pace->last_row) + 1;
    int32_t wanted = more_of(pace->limit, row);

    return wanted < pace->limit * SEVERAL_TIMES ? wanted : pace->limit * SEVERAL_TIMES;
}

static bool may_be_given_more(const struct stream *stream)
{
    const struct session *session = stream->session;
    const struct stream_pace *pace = &stream->pace;
    bool is_strict = stream->sm_share->streams == 1 || is_sought(session->server);

    if (session->streams->has_host_waits)
        return pace->in_flight < PACE_PIECES_MAX;
    return pace->in_flight < (is_strict ? pace->limit : limit_of_several(pace));
}

static void pause_for(uint64_t ns)
{
    const struct timespec pause = {.tv_nsec = (long)ns};

    nanosleep(&pause, NULL);
}

static void lose_patience(struct stream_pace *pace)
{
    set_limit(pace, 2 * (uint64_t)pace->limit);
    pace->passed_at = 0;
}

static uint64_t pause_between_looks(const struct stream_pace *pace)
{
    uint64_t pieces = pace->count ? (uint64_t)pace->marks[pace->first].pieces : 0;
    uint64_t pause = pieces * pace->piece_ns / LOOKS_AT_MARK;

    return pause < PAUSE_NS_MIN ? PAUSE_NS_MIN : pause > PAUSE_NS_MAX ? PAUSE_NS_MAX : pause;
}

/* The first mark has been awaited for this long. Other work on the GPU may be the cause; then the
 * next marks tell better. */
static void learn_from_waiting(struct stream_pace *pace, uint64_t waited)
{
    uint64_t least = pace->count ? waited / (uint64_t)pace->marks[pace->first].pieces : 0;

    if (waited < LONG_WORK_NS || least <= pace->piece_ns)
        return;
    pace->piece_ns = least;
    set_limit(pace, PACE_AHEAD_NS / least);
}

static void await_marks(struct stream *stream)
{
    uint64_t now = clock_ns(), since = now;

    while (!may_be_given_more(stream) && !stream->session->stop) {
        uint64_t before = now;
        pause_for(pause_between_looks(&stream->pace));
        now = clock_ns();
        if (take_passed(stream, before, now)) {
            since = now;
            continue;
        }
        learn_from_waiting(&stream->pace, now - since);
        if (now - since >= PATIENCE_NS) {
            lose_patience(&stream->pace);
            since = now;
        }
    }
}

bool streams_are_held(struct session *session)
{
    return !session->stop && calm_is_held(session);
}

/* The others see how far its work has come. */
static void look_at_marks(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        list_for_each (struct stream, stream, &session->streams->of_device[i], link) {
            if (stream->pace.count && session_enter(session, stream->device) == CUDA_SUCCESS)
                take_passed(stream, 0, clock_ns());
        }
    }
}

/* Another session is about to make a call that waits for all streams. Partner: calm.c. */
void streams_stay_held(struct session *session)
{
    if (!streams_are_held(session))
        return;
    session_set_at_rest(session, true);
    while (streams_are_held(session)) {
        pause_for(HELD_PAUSE_NS);
        look_at_marks(session);
    }
    session_set_at_rest(session, false);
}

static void set_awaits_turn(struct session *session, bool awaits)
{
    atomic_store_explicit(&session->streams->awaits_turn, awaits, memory_order_relaxed);
}

static void wait_for_turn(struct stream *stream)
{
    session_set_at_rest(stream->session, true);
    set_awaits_turn(stream->session, true);
    await_marks(stream);
    set_awaits_turn(stream->session, false);
    session_set_at_rest(stream->session, false);
    streams_stay_held(stream->session);
}

/* ---- steps ---- */

/* The first mark of a stream that was idle comes later: the others follow before it is awaited. */
static int32_t next_step(const struct stream_pace *pace, bool was_idle)
{
    int32_t step = pace->limit / MARKS_WANTED;
    int32_t first = pace->piece_ns || pace->limit > LIMIT_FIRST ? STEP_FIRST : STEP_UNKNOWN;
    int32_t least = !was_idle ? 1 : pace->limit < first ? pace->limit : first;

    return step > least ? step : least;
}

/* `pieces` were given since the last step, and the stream has done all of them. */
static void note_idle(struct stream_pace *pace, int32_t pieces, uint64_t now)
{
    if (pieces)
        suppose(pace, now - pace->stepped_at, pieces);
}

static void step_ahead(struct stream *stream, int32_t pieces, uint64_t now)
{
    if (pieces)
        add_mark(stream, pieces);
    take_passed(stream, 0, now);
    if (!stream->pace.count)
        note_idle(&stream->pace, pieces, now);
    if (!may_be_given_more(stream))
        wait_for_turn(stream);
}

static void step_while_idle(struct stream *stream, int32_t pieces, uint64_t now)
{
    note_idle(&stream->pace, pieces, now);
    stream_pace_end(stream);
}

static void count_row(struct stream *stream, int32_t pieces)
{
    struct session_streams *streams = stream->session->streams;
    struct stream_pace *pace = &stream->pace;

    if (streams->given_last != stream->word) {
        streams->given_last = stream->word;
        pace->last_row = pace->row;
        pace->row = 0;
    }
    if (pace->row < LIMIT_MAX)
        pace->row += pieces;
}

void stream_pace_step(struct stream *stream)
{
    struct session *session = stream->session;
    struct stream_pace *pace = &stream->pace;
    int32_t pieces = pace->step - pace->left;
    bool idle = !fence_pending(session, stream->word);

    if (pieces)
        count_row(stream, pieces);
    if (stream->driver && !session->server->streams->no_pace &&
        session_enter(session, stream->device) == CUDA_SUCCESS) {
        uint64_t now = clock_ns();
        if (idle)
            step_while_idle(stream, pieces, now);
        else
            step_ahead(stream, pieces, now);
        pace->stepped_at = now;
    }
    pace->step = next_step(pace, idle);
    pace->left = pace->step;
}

uint64_t streams_progressed_at(const struct session *session)
{
    return atomic_load_explicit(&session->streams->progressed_at, memory_order_relaxed);
}
