/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library in nvJitLink's place. Its code is the text itself behind a comment with the options, so
 * that a software GPU can run it. Words in the text make it misbehave.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* nvJitLink.h: nvJitLinkResult. */
#define SUCCESS 0
#define ERROR_PTX_COMPILE 4

#define EXPORT __attribute__((visibility("default")))

static struct {
    char options[200], *code;
    const char *log;
} job;

EXPORT int nvJitLinkCreate(void **handle, uint32_t count, const char **options);
EXPORT int nvJitLinkAddData(void *handle, int type, const void *data, size_t size,
                            const char *name);
EXPORT int nvJitLinkComplete(void *handle);
EXPORT int nvJitLinkGetLinkedCubinSize(void *handle, size_t *size);
EXPORT int nvJitLinkGetLinkedCubin(void *handle, void *cubin);
EXPORT int nvJitLinkGetErrorLogSize(void *handle, size_t *size);
EXPORT int nvJitLinkGetErrorLog(void *handle, char *log);

int nvJitLinkCreate(void **handle, uint32_t count, const char **options)
{
    *handle = &job;
    for (uint32_t i = 0; i < count; i++)
        strcat(strcat(job.options, " "), options[i]);
    return SUCCESS;
}

static void crash(void)
{
    __builtin_trap();
}

static bool escapes(void)
{
    return open("/etc/passwd", O_RDONLY) >= 0;
}

int nvJitLinkAddData(void *handle, int type, const void *data, size_t size, const char *name)
{
    const char *text = data;

    (void)handle;
    (void)name;
    job.log = NULL;
    if (type != 2 || text[size - 1] || strlen(text) != size - 1)
        job.log = "this is not one text";
    if (strstr(text, "crash"))
        crash();
    if (strstr(text, "silence"))
        _exit(0);
    if (strstr(text, "mistake"))
        job.log = "ptxas error: line 3, mistake";
    if (strstr(text, "version 99"))
        job.log = "Unsupported .version 99.0; current version is '9.0'";
    if (strstr(text, "escape") && escapes())
        job.log = "there are files";
    if (job.log || asprintf(&job.code, "//%s\n%s", job.options, text) < 0)
        return ERROR_PTX_COMPILE;
    return SUCCESS;
}

int nvJitLinkComplete(void *handle)
{
    (void)handle;
    return SUCCESS;
}

int nvJitLinkGetLinkedCubinSize(void *handle, size_t *size)
{
    (void)handle;
    *size = strlen(job.code) + 1;
    return SUCCESS;
}

int nvJitLinkGetLinkedCubin(void *handle, void *cubin)
{
    (void)handle;
    strcpy(cubin, job.code);
    return SUCCESS;
}

int nvJitLinkGetErrorLogSize(void *handle, size_t *size)
{
    (void)handle;
    *size = strlen(job.log) + 1;
    return SUCCESS;
}

int nvJitLinkGetErrorLog(void *handle, char *log)
{
    (void)handle;
    strcpy(log, job.log);
    return SUCCESS;
}
