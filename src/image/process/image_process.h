/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on images in processes of their own: one for each image, which can reach no file, no other
 * process and little memory, and ends after its answer. A crash or an endless loop there costs that
 * image's load and nothing else.
 *
 *     server ── the image's file, a pipe ──> process, begun before the server has anything to hide
 *        ^                                     └─ fork for each image ──> limits, filter, job
 *        └──────────── what the job writes ─────────────────────────────────┘
 *
 * Nothing is executed, so a server that may start no programs can have them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_process;

/* Bytes of a reason. */
#define IMAGE_PROCESS_WHY 256u

/* An image of which image_is_sound() holds. */
struct image_source {
    int fd; /* a sealed file that begins with the image and a NUL; -1: there is none, and one is
               made */
    const void *bytes;
    size_t size;
};

/* What is asked about an image. */
struct image_task {
    uint32_t sm;         /* the device's architecture, such as 90 */
    uint32_t options[3]; /* what these mean is between the job and who asks */
};

/* Writes its answer to a descriptor; an empty answer counts as a crash. */
typedef void image_job(const void *context, const void *bytes, size_t size,
                       const struct image_task *task, int answer);

struct image_process_kind {
    const char *name; /* of the process, at most 15 bytes */
    image_job *job;
    const void *context; /* of the functions */
    /* Once, before the first image and without its limits; not 0, and why: the process is of no
     * use. NULL: there is nothing to do. */
    int (*prepare)(const void *context, char *why, size_t why_size);
    /* Answers for an image for which there is no process: out of memory, or of processes. NULL: the
     * answer is empty. */
    void (*excuse)(int answer);
    unsigned cpu_seconds; /* for an image */
    uint64_t memory_max;  /* bytes of private memory for an image */
    size_t answer_max;    /* bytes */
};

/* Starts the process, which has one thread; what the caller holds in memory now is what it can see.
 * 0; -errno, and the reason. The kind is copied. */
int image_process_start(const struct image_process_kind *kind, char *why, size_t why_size,
                        struct image_process **ret_process);

/* No thread asks any more. NULL is allowed. */
void image_process_stop(struct image_process *process);

/* Any thread: has an image worked on, which goes on while the caller does something else. The pipe
 * that the answer comes through, for image_process_answer(); -errno. */
int image_process_ask(const struct image_process *process, const struct image_source *source,
                      const struct image_task *task);

/* Waits for the answer, which the caller frees and has to check, and closes the pipe.
 * 0; -EBADMSG when it is empty or too long: the job has crashed, used up its time or answered
 * nonsense; -EPIPE when the process that forks the others is gone; -ENOMEM. */
int image_process_answer(const struct image_process *process, int pipe, void **ret_answer,
                         size_t *ret_size);
