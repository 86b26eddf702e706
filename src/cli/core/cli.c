/* SPDX-License-Identifier: Apache-2.0 */
/* See cli.h. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct subcommand *cli_current;
char **cli_words;

static void say(const char *format, va_list arguments)
{
    fprintf(stderr, "funnel %s: ", cli_current ? cli_current->name : "");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int cli_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return 1;
}

int cli_usage(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    fprintf(stderr, "Try: funnel %s --help\n", cli_current ? cli_current->name : "");
    return 2;
}

int cli_wrong_option(void)
{
    const char *word = cli_words[optind - 1];
    bool is_long = !strncmp(word, "--", 2);

    if (is_long && !optopt)
        return cli_usage("unknown option %s", word);
    if (is_long && strchr(word, '='))
        return cli_usage("%s: this option takes no value", word);
    if (is_long && !cli_words[optind])
        return cli_usage("%s: its value is missing", word);
    return cli_usage("unknown option -%c, or its value is missing", optopt);
}

bool cli_is_device(const char *name)
{
    return !strcmp(name, "auto") || !strcmp(name, "cuda") || !strcmp(name, "soft");
}

const char *cli_default_device(void)
{
    const char *device = getenv("FUNNEL_DEVICE");

    if (!device || !*device)
        return "auto";
    if (cli_is_device(device))
        return device;
    cli_usage("FUNNEL_DEVICE is auto, cuda or soft, not %s", device);
    return NULL;
}

static int explain_paths(int error)
{
    return error ? cli_fail("cannot use the pipe or log directory: %s", paths_error_text(error))
                 : 0;
}

int cli_paths(struct paths *ret_paths)
{
    return explain_paths(paths_resolve(ret_paths));
}

int cli_find_daemon(struct paths *ret_paths)
{
    return explain_paths(paths_find_daemon(ret_paths));
}

static void silence_errors(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null >= 0)
        dup2(null, STDERR_FILENO);
}

/* A daemon takes these as defaults for all programs, and as the devices of its servers. A library
 * of a profiler would be loaded by the driver of the server. */
static void forget_program_settings(void)
{
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    unsetenv("CUDA_MPS_CLIENT_PRIORITY");
    unsetenv("FUNNEL_SHOW_LIMIT");
    unsetenv("CUDA_INJECTION64_PATH");
}

_Noreturn static void become_daemon(const char *program, const struct daemon_options *options)
{
    const char *arguments[20] = {"funneld", "-d", "--device", options->device};
    int count = 4;

    if (options->static_partitioning)
        arguments[count++] = "--static-partitioning";
    if (options->multiuser)
        arguments[count++] = "--multiuser-server";
    if (options->server_user) {
        arguments[count++] = "--server-user";
        arguments[count++] = options->server_user;
    }
    if (options->config) {
        arguments[count++] = "--apply";
        arguments[count++] = options->config;
    }
    if (options->spare)
        arguments[count++] = "--spare";
    if (options->isolation) {
        arguments[count++] = "--isolate";
        arguments[count++] = options->isolation;
    }
    if (options->stall_timeout) {
        arguments[count++] = "--stall-timeout";
        arguments[count++] = options->stall_timeout;
    }
    if (options->metrics) {
        arguments[count++] = "--metrics";
        arguments[count++] = options->metrics;
    }
    if (options->is_for_program)
        forget_program_settings();
    execv(program, (char **)arguments);
    _exit(cli_fail("cannot run %s: %s", program, strerror(errno)));
}

int cli_start_daemon(const struct daemon_options *options, bool quiet)
{
    char program[PATH_MAX];
    int error = path_of_sibling("bin/funneld", program, sizeof(program));
    int status;
    pid_t pid;

    if (error)
        return cli_fail("cannot find funneld: %s", strerror(-error));
    pid = fork();
    if (pid < 0)
        return cli_fail("cannot fork: %s", strerror(errno));
    if (pid == 0) {
        if (quiet)
            silence_errors();
        become_daemon(program, options);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail("lost funneld: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
