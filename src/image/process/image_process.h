/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a job on each image in a process of its own. That process can access no file, no other
 * process and little memory, and ends after its answer. A crash or an endless loop fails the load
 * of that image and nothing else.
 *
 *     server ── the image's file, a pipe ──> process, begun before the server has anything to hide
 *        ^                                     └─ fork for each image ──> limits, filter, job
 *        └──────────── what the job writes ─────────────────────────────────┘
 *
 * The processes come from fork() without exec(), so a server that may start no programs can have
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_process;

/* Bytes of a reason. */
#define IMAGE_PROCESS_WHY 256u

/* A sound image (image_is_sound()). */
struct image_source {
    int fd; /* a sealed file that begins with the image and a NUL; -1: there is none, and one is
               made */
    const void *bytes;
    size_t size;
};

/* The arguments of a job. */
struct image_task {
    uint32_t sm;         /* the device's architecture, such as 90 */
    uint32_t options[3]; /* their meaning is up to the job */
};

/* Writes its answer to a descriptor; an empty answer counts as a crash. */
typedef void image_job(const void *context, const void *bytes, size_t size,
                       const struct image_task *task, int answer);

struct image_process_kind {
    const char *name; /* of the process, at most 15 bytes */
    image_job *job;
    const void *context; /* of the functions */
    /* Called once, before the first image and without its limits. Not 0, with the reason: the
     * process is of no use. May be NULL. */
    int (*prepare)(const void *context, char *why, size_t why_size);
    /* Answers for an image when no process can be forked. NULL: the answer is empty. */
    void (*excuse)(int answer);
    unsigned cpu_seconds; /* for an image */
    uint64_t memory_max;  /* bytes of private memory for an image */
    size_t answer_max;    /* bytes */
};

/* Starts the process. The caller has one thread; the process sees a copy of its memory of now. 0;
 * -errno, with the reason. The kind is copied. */
int image_process_start(const struct image_process_kind *kind, char *why, size_t why_size,
                        struct image_process **ret_process);

/* No thread uses the process any more. NULL is allowed. */
void image_process_stop(struct image_process *process);

/* From any thread: starts a job on an image, and does not wait. Returns the pipe of the answer, for
 * image_process_answer(), or -errno. */
int image_process_ask(const struct image_process *process, const struct image_source *source,
                      const struct image_task *task);

/* Waits for the answer, which the caller frees and must check, and closes the pipe. Returns 0 or
 * -ENOMEM. -EPIPE: the forking process is gone. -EBADMSG: the answer is empty or too long, because
 * the job crashed or exceeded its time. */
int image_process_answer(const struct image_process *process, int pipe, void **ret_answer,
                         size_t *ret_size);
