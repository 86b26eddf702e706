/* SPDX-License-Identifier: Apache-2.0 */
#include "image_reader.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cleanup.h"
#include "fd.h"
#include "log.h"

/* Bytes of private memory: a part of an image that is expanded, and its variables. */
#define MEMORY_MAX (512ull << 20)

struct image_reader {
    struct image_process *process;
    image_look *look;
    atomic_bool lost; /* and the log says so */
};

static void give_facts(int fd, const struct image_facts *facts)
{
    void *message = NULL;
    size_t size = 0;

    if (!image_facts_pack(facts, &message, &size))
        write_all(fd, message, size);
    free(message);
}

static void look_into(const void *context, const void *bytes, size_t size,
                      const struct image_task *task, int answer)
{
    const struct image_reader *reader = context;
    struct image_facts facts;

    reader->look(bytes, size, task->sm, &facts);
    give_facts(answer, &facts);
}

/* No process could be forked, and the image is not the cause. */
static void assume_all(int answer)
{
    struct image_facts facts;

    image_facts_assume(&facts);
    give_facts(answer, &facts);
}

int image_reader_start(image_look *look, unsigned cpu_seconds, struct image_reader **ret_reader)
{
    struct image_reader *reader = calloc(1, sizeof(*reader));
    const struct image_process_kind kind = {.name = "funnel-reader",
                                            .job = look_into,
                                            .context = reader,
                                            .excuse = assume_all,
                                            .cpu_seconds = cpu_seconds,
                                            .memory_max = MEMORY_MAX,
                                            .answer_max = IMAGE_FACTS_MAX};
    char why[IMAGE_PROCESS_WHY];

    if (!reader)
        return -ENOMEM;
    reader->look = look;
    int error = image_process_start(&kind, why, sizeof(why), &reader->process);
    if (error) {
        image_reader_stop(reader);
        return error;
    }
    *ret_reader = reader;
    return 0;
}

void image_reader_stop(struct image_reader *reader)
{
    if (!reader)
        return;
    image_process_stop(reader->process);
    free(reader);
}

static int receive_facts(const struct image_reader *reader, int pipe, struct image_facts *ret_facts)
{
    _cleanup_free_ void *answer = NULL;
    size_t size;
    int error = image_process_answer(reader->process, pipe, &answer, &size);

    return error ? error : image_facts_parse(answer, size, ret_facts);
}

static void assume(struct image_reader *reader, int error, struct image_facts *ret_facts)
{
    if (!atomic_exchange(&reader->lost, true))
        log_line("The process that reads images cannot be reached (error %d): from now on nothing "
                 "is known of them, and each client loads its own",
                 -error);
    image_facts_assume(ret_facts);
}

void image_reader_begin(const struct image_reader *reader, const struct image_source *source,
                        unsigned sm, struct image_question *ret_question)
{
    const struct image_task task = {.sm = sm};

    *ret_question = (struct image_question){
        .source = source,
        .sm = sm,
        .answer = reader ? image_process_ask(reader->process, source, &task) : -1};
}

int image_reader_end(struct image_reader *reader, struct image_question *question,
                     struct image_facts *ret_facts)
{
    const struct image_source *source = question->source;

    if (!reader) {
        image_facts_read(source->bytes, source->size, question->sm, ret_facts);
        return 0;
    }
    int error = question->answer < 0 ? question->answer
                                     : receive_facts(reader, question->answer, ret_facts);
    if (!error || error == -EBADMSG || error == -ENOMEM)
        return error;
    assume(reader, error, ret_facts);
    return 0;
}
