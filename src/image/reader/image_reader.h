/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks into the contents of images in processes of their own: one for each image, which can reach
 * no file, no other process and little memory, and ends after its answer. A crash or an endless
 * loop there costs that image's load and nothing else.
 *
 *     server ── the image's file, a pipe ──> reader, begun before the server has anything to hide
 *        ^                                     └─ fork for each image ──> limits, filter, look
 *        └──────────── facts of the image (image_facts.h) ──────────────────┘
 *
 * Nothing is executed, so a server that may start no programs can have one.
 */
#pragma once

#include "image_facts.h"

struct image_reader;

/* An image of which image_is_sound() holds. */
struct image_source {
    int fd; /* a sealed file that begins with the image and a NUL; -1: there is none, and one is
               made */
    const void *bytes;
    size_t size;
};

/* How an image is looked into: image_facts_read(), or what a test does instead. */
typedef void image_look(const void *bytes, size_t size, unsigned sm, struct image_facts *ret_facts);

/* Starts the reader: 0 or -errno. The process has one thread, and what it holds in memory now is
 * what a reader can see. An image may take `cpu_seconds`. */
int image_reader_start(image_look *look, unsigned cpu_seconds, struct image_reader **ret_reader);

/* No thread asks any more. NULL is allowed. */
void image_reader_stop(struct image_reader *reader);

/* Any thread: has an image looked into, which goes on while the caller does something else.
 * `source` stays as it is until the end. With `reader` NULL nothing happens yet. Always followed by
 * image_reader_end(). */
struct image_question {
    const struct image_source *source;
    unsigned sm;
    int answer; /* the end of a pipe, or -errno */
};
void image_reader_begin(const struct image_reader *reader, const struct image_source *source,
                        unsigned sm, struct image_question *ret_question);

/* Waits for the answer: what the image holds, for the caller to end with image_facts_fini(). 0;
 * -EBADMSG when the process that looked into it has crashed, used up its time or answered nonsense;
 * -ENOMEM. If the reader itself has ended, what holds for every image, and the log says so once.
 * With `reader` NULL this process looks into the image. */
int image_reader_end(struct image_reader *reader, struct image_question *question,
                     struct image_facts *ret_facts);
