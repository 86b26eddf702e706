/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into the contents of images in processes of their own (image_process.h). */
#pragma once

#include "image_facts.h"
#include "image_process.h"

struct image_reader;

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
