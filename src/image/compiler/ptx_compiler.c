/* SPDX-License-Identifier: Apache-2.0 */
/* The answer is a header, the log with a NUL, and the code. */
#include "ptx_compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "fd.h"
#include "image_choice.h"
#include "image_parts.h"

/* The largest kernels of libraries take tens of seconds and some hundred MiB. */
#define CPU_SECONDS 300u
#define MEMORY_MAX (4ull << 30)
#define ANSWER_MAX (256u << 20)

enum { OPTION_REGISTERS, OPTION_OPTIMIZATION, OPTION_FLAGS };
#define DEBUG_INFO 1u
#define LINE_INFO 2u

struct ptx_compiler {
    struct image_process *process;
    char *path;
};

struct answer {
    int32_t error;
    uint32_t log_size; /* with its NUL */
};

/* ---- in the process ---- */

static int prepare_linker(const void *context, char *why, size_t why_size)
{
    const struct ptx_compiler *compiler = context;

    return jit_link_open(compiler->path, why, why_size);
}

static void give_answer(int fd, int error, const char *log, const void *code, size_t size)
{
    const char *said = log ? log : "";
    const struct answer answer = {.error = error, .log_size = (uint32_t)strlen(said) + 1};

    if (!write_all(fd, &answer, sizeof(answer)) && !write_all(fd, said, answer.log_size) && code)
        write_all(fd, code, size);
}

struct job {
    struct image_choice choice;
    struct jit_link_options options;
    int answer;
};

static bool is_wanted(void *context, const struct image_part *part)
{
    const struct job *job = context;

    return image_is_chosen(&job->choice, part);
}

/* Compiles the first variant. PTX in a container may end with several NULs, or with none. */
static bool compile_part(void *context, const struct image_part *part)
{
    const struct job *job = context;
    size_t size = 0;
    void *code = NULL;
    char *log = NULL;
    const char *ptx = strndup(part->bytes, part->size);
    int error = ptx ? jit_link_compile(ptx, &job->options, &code, &size, &log) : -ENOMEM;

    give_answer(job->answer, error, log, code, size);
    return true;
}

static void compile_ptx(const void *context, const void *bytes, size_t size,
                        const struct image_task *task, int answer)
{
    struct job job = {
        .options = {.sm = task->sm,
                    .max_registers = task->options[OPTION_REGISTERS],
                    .optimization = task->options[OPTION_OPTIMIZATION],
                    .debug_info = task->options[OPTION_FLAGS] & DEBUG_INFO,
                    .line_info = task->options[OPTION_FLAGS] & LINE_INFO},
        .answer = answer,
    };
    const struct image_visit visit = {.wants = is_wanted, .test = compile_part, .context = &job};

    (void)context;
    if (image_choose(bytes, size, task->sm, &job.choice))
        image_any_part(bytes, size, &visit);
}

/* ---- in the server ---- */

int ptx_compiler_start(const char *path, char *why, size_t why_size,
                       struct ptx_compiler **ret_compiler)
{
    struct ptx_compiler *compiler = calloc(1, sizeof(*compiler));
    const struct image_process_kind kind = {.name = "funnel-compiler",
                                            .job = compile_ptx,
                                            .context = compiler,
                                            .prepare = prepare_linker,
                                            .cpu_seconds = CPU_SECONDS,
                                            .memory_max = MEMORY_MAX,
                                            .answer_max = ANSWER_MAX};
    int error = -ENOMEM;

    if (compiler && (compiler->path = strdup(path)))
        error = image_process_start(&kind, why, why_size, &compiler->process);
    if (error) {
        ptx_compiler_stop(compiler);
        return error;
    }
    *ret_compiler = compiler;
    return 0;
}

void ptx_compiler_stop(struct ptx_compiler *compiler)
{
    if (!compiler)
        return;
    image_process_stop(compiler->process);
    free(compiler->path);
    free(compiler);
}

bool ptx_compiler_is_needed(const void *bytes, size_t size, unsigned sm)
{
    struct image_choice choice;

    return image_choose(bytes, size, sm, &choice) && choice.kind == IMAGE_PTX;
}

static int parse_answer(char *message, size_t size, struct ptx_compiled *ret_compiled)
{
    struct answer answer;

    if (size < sizeof(answer))
        return -EBADMSG;
    memcpy(&answer, message, sizeof(answer));
    size -= sizeof(answer);
    message += sizeof(answer);
    if (!answer.log_size || answer.log_size > size || message[answer.log_size - 1])
        return -EBADMSG;
    ret_compiled->log = message;
    ret_compiled->code = message + answer.log_size;
    ret_compiled->code_size = size - answer.log_size;
    switch (answer.error) {
    case 0:
        return ret_compiled->code_size ? 0 : -EBADMSG;
    case -EINVAL:
    case -EPROTONOSUPPORT:
    case -ENOMEM:
        return answer.error;
    default:
        return -EBADMSG;
    }
}

static int await_answer(const struct ptx_compiler *compiler, int pipe,
                        struct ptx_compiled *ret_compiled)
{
    void *message = NULL;
    size_t size;
    int error = image_process_answer(compiler->process, pipe, &message, &size);

    ret_compiled->message = message;
    return error ? error : parse_answer(message, size, ret_compiled);
}

int ptx_compiler_compile(const struct ptx_compiler *compiler, const struct image_source *source,
                         const struct jit_link_options *options, struct ptx_compiled *ret_compiled)
{
    const struct image_task task = {
        .sm = options->sm,
        .options = {[OPTION_REGISTERS] = options->max_registers,
                    [OPTION_OPTIMIZATION] = options->optimization,
                    [OPTION_FLAGS] = (options->debug_info ? DEBUG_INFO : 0) |
                                     (options->line_info ? LINE_INFO : 0)},
    };
    int pipe = image_process_ask(compiler->process, source, &task);

    *ret_compiled = (struct ptx_compiled){.log = ""};
    return pipe < 0 ? pipe : await_answer(compiler, pipe, ret_compiled);
}

void ptx_compiled_fini(struct ptx_compiled *compiled)
{
    free(compiled->message);
}
