/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the contents of images in separate processes (image_process.h). */
#pragma once

#include "image_facts.h"
#include "image_process.h"

struct image_reader;

/* The function that reads an image: image_facts_read(), or a test's own. */
typedef void image_look(const void *bytes, size_t size, unsigned sm, struct image_facts *ret_facts);

/* Starts the reader: 0 or -errno. The calling process has one thread; the reader sees a copy of its
 * memory of now. `cpu_seconds` limits the time for one image. */
int image_reader_start(image_look *look, unsigned cpu_seconds, struct image_reader **ret_reader);

/* No thread uses the reader any more. NULL is allowed. */
void image_reader_stop(struct image_reader *reader);

/* From any thread: starts to read an image, and does not wait. `source` must not change until
 * image_reader_end(), which must follow. With `reader` NULL nothing happens yet. */
struct image_question {
    const struct image_source *source;
    unsigned sm;
    int answer; /* the end of a pipe, or -errno */
};
void image_reader_begin(const struct image_reader *reader, const struct image_source *source,
                        unsigned sm, struct image_question *ret_question);

/* Waits for the facts, which the caller frees with image_facts_fini(). Returns 0 or -ENOMEM.
 * -EBADMSG: the reading process crashed, exceeded its time or sent an invalid answer. If the reader
 * itself has ended, the facts are those of every image, and the log says so once. With `reader`
 * NULL this process reads the image. */
int image_reader_end(struct image_reader *reader, struct image_question *question,
                     struct image_facts *ret_facts);
