/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a client may run ahead of the GPU in one stream.
 *
 * What a driver's stream has been given can not be taken back: a call that waits for all streams
 * has to wait for it, and NVIDIA's driver takes 1024 launches before one has to wait, each of them
 * possibly a graph of 16 kernels. So the rest of a client's work stays in its ring. Every so many
 * pieces of work an event is recorded behind them, a mark; when so many pieces are in flight as
 * take PACE_AHEAD_NS, by the time from mark to mark, the session's thread waits for the next mark.
 * So a stream never runs empty because of this. Where a client has several streams, the work of the
 * others lies in the ring behind that of the one which waits. So each may be given as many pieces
 * as its client gives it in a row, up to four times as much and to eight pieces at least, unless
 * another client waits for a calm moment: programs that fill one stream after the other see them
 * overlap, and those that use their streams in turn are not ahead of the GPU for long. A client
 * that makes streams wait for itself is limited by the number of pieces alone.
 *
 * Functions are the session thread's unless their comment says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver_table.h"

struct server;
struct session;
struct stream;

#define PACE_AHEAD_NS (40 * NS_PER_MS)
#define PACE_PIECES_MAX 512
#define PACE_MARKS_MAX 16u

struct stream_pace {
    int32_t left;      /* pieces until the next mark */
    int32_t step;      /* what `left` was at the last mark; 0 = there was none yet */
    int32_t limit;     /* pieces that may be in flight for the sake of time */
    int32_t batch;     /* pieces that may be given to the driver at once */
    int32_t in_flight; /* pieces that are not known to be done */
    unsigned first, count;
    struct {
        CUevent event;
        int32_t pieces; /* between the mark before and this one */
    } marks[PACE_MARKS_MAX];
    uint64_t passed_after, passed_at; /* clock_ns(): the stream came to a mark between these; 0 =
                                       * nobody looked */
    int32_t row, last_row; /* pieces that the client gave it before it gave another stream some:
                            * this time, as far as is known, and the time before */
    uint64_t stepped_at;   /* clock_ns() at the last step */
    uint64_t piece_ns;     /* the time of a piece, an average; 0 = unknown */
};

#define PACE_BATCH_MAX 16

void stream_pace_init(struct stream *stream);

/* Gives the events back. */
void stream_pace_end(struct stream *stream);

/* When `left` is used up: makes a mark, and waits until the stream may be given more, at rest
 * (session.h). No lock is held. */
void stream_pace_step(struct stream *stream);

/* Whether others hold the session back (calm.h), and waiting, at rest, until they do not. */
bool streams_are_held(struct session *session);
void streams_stay_held(struct session *session);

/* From any thread: when a stream of the session last came to a mark, by clock_ns(); 0 = never. */
uint64_t streams_progressed_at(const struct session *session);

/* On any thread, around the time for which it waits for a calm moment: clients are kept from
 * running far ahead. */
void stream_pace_seek(struct server *server);
void stream_pace_seek_end(struct server *server);
