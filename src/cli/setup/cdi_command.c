/* SPDX-License-Identifier: Apache-2.0 */
/*
 * funnel cdi: a specification for the Container Device Interface, with which podman, containerd,
 * CRI-O and docker give a container Funnel's library and the daemon's directory. The library is
 * mounted where dynamic linkers look by themselves, so that no variable of the image has to be
 * replaced.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "text.h"
#include "text_file.h"

#define LIBRARY "libcuda.so.1"
#define INSIDE "/run/funnel"
#define SHARES_MAX 32

/* As whom the daemon's user appears in a user namespace that does not map it. */
#define UNMAPPED_UID "65534"

/* Where Debian's and Red Hat's linkers look without configuration. */
static const char *const places[] = {
#if defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu/" LIBRARY,
#else
    "/usr/lib/x86_64-linux-gnu/" LIBRARY,
#endif
    "/usr/lib64/" LIBRARY,
};

#define PLACES (sizeof(places) / sizeof(*places))

struct cdi {
    char library[PATH_MAX];
    char pipe[PATH_MAX];
    unsigned shares[SHARES_MAX]; /* percent */
    unsigned share_count;
};

static void write_devices(FILE *out, const struct cdi *cdi)
{
    fputs("  \"devices\": [\n    {\"name\": \"all\", \"containerEdits\": {\"env\": "
          "[\"FUNNEL_REQUIRE=1\"]}}",
          out);
    for (unsigned i = 0; i < cdi->share_count; i++)
        fprintf(out,
                ",\n    {\"name\": \"share-%u\", \"containerEdits\": {\"env\": "
                "[\"FUNNEL_REQUIRE=1\", \"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u\"]}}",
                cdi->shares[i], cdi->shares[i]);
    fputs("\n  ],\n", out);
}

static void write_mount(FILE *out, const char *host, const char *inside, const char *end)
{
    fprintf(out,
            "      {\"hostPath\": \"%s\", \"containerPath\": \"%s\", "
            "\"options\": [\"ro\", \"nosuid\", \"nodev\", \"rbind\"]}%s\n",
            host, inside, end);
}

static void write_cdi(FILE *out, const struct cdi *cdi)
{
    fputs("{\n  \"cdiVersion\": \"0.5.0\",\n  \"kind\": \"funnel/gpu\",\n", out);
    write_devices(out, cdi);
    fputs("  \"containerEdits\": {\n"
          "    \"env\": [\"CUDA_MPS_PIPE_DIRECTORY=" INSIDE "\", "
          "\"FUNNEL_DAEMON_UID=" UNMAPPED_UID "\"],\n"
          "    \"mounts\": [\n",
          out);
    for (unsigned i = 0; i < PLACES; i++)
        write_mount(out, cdi->library, places[i], ",");
    write_mount(out, cdi->pipe, INSIDE, "");
    fputs("    ]\n  }\n}\n", out);
}

static int write_to_file(const struct cdi *cdi, const char *path)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int error;

    if (!out)
        return cli_fail("out of memory");
    write_cdi(out, cdi);
    error = fclose(out) ? -errno : text_file_write(path, text, 0644);
    free(text);
    return error ? cli_fail("cannot write %s: %s", path, strerror(-error)) : 0;
}

/* "25,50": 0, or 2 after an error message. */
static int parse_shares(const char *list, struct cdi *cdi)
{
    char copy[256], *rest = NULL;

    if (!text_copy(copy, sizeof(copy), list))
        return cli_usage("--shares is too long");
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        uint64_t share;

        if (text_to_u64(word, &share) || share < 1 || share > 100)
            return cli_usage("--shares takes percentages from 1 to 100, such as 25,50");
        if (cdi->share_count == SHARES_MAX)
            return cli_usage("--shares takes at most %d", SHARES_MAX);
        cdi->shares[cdi->share_count++] = (unsigned)share;
    }
    return 0;
}

static bool is_plain(const char *path)
{
    return !strpbrk(path, "\"\\\n\t");
}

static int find_paths(struct cdi *cdi)
{
    struct paths paths;

    if (path_of_sibling("lib/funnel/" LIBRARY, cdi->library, sizeof(cdi->library)) ||
        access(cdi->library, R_OK))
        return cli_fail("cannot find the client library: the installation is incomplete");
    if (cli_find_daemon(&paths))
        return 1;
    text_copy(cdi->pipe, sizeof(cdi->pipe), paths.pipe);
    if (!is_plain(cdi->library) || !is_plain(cdi->pipe))
        return cli_fail("a path has characters that JSON would have to escape");
    return 0;
}

static int run_cdi(int argc, char **argv)
{
    static const struct option known[] = {{"output", required_argument, NULL, 'o'},
                                          {"shares", required_argument, NULL, 's'},
                                          {NULL, 0, NULL, 0}};
    struct cdi cdi = {.share_count = 0};
    const char *output = NULL;
    int option, status = 0;

    while (!status && (option = getopt_long(argc, argv, "o:", known, NULL)) != -1) {
        if (option == 'o')
            output = optarg;
        else
            status = option == 's' ? parse_shares(optarg, &cdi) : cli_wrong_option();
    }
    if (!status && optind < argc)
        status = cli_usage("it takes no argument");
    if (!status)
        status = find_paths(&cdi);
    if (status)
        return status;
    if (output)
        return write_to_file(&cdi, output);
    write_cdi(stdout, &cdi);
    return ferror(stdout) != 0;
}

const struct subcommand cdi_subcommands[] = {
    {"cdi", "describe Funnel to container engines",
     "Usage: funnel cdi [-o FILE] [--shares PERCENT,PERCENT...]\n\n"
     "Prints a specification for the Container Device Interface (CDI). A container that gets the\n"
     "device funnel/gpu=all finds Funnel's libcuda.so.1 and the daemon of this machine.\n\n"
     "  -o, --output FILE  write it there: /etc/cdi/funnel.json is where engines look\n"
     "      --shares LIST  also the devices funnel/gpu=share-25, ... with that percentage of the\n"
     "                     multiprocessors\n\n"
     "Examples:\n"
     "  funnel cdi -o /etc/cdi/funnel.json\n"
     "  funnel cdi --shares 25,50 -o /etc/cdi/funnel.json\n"
     "  podman run --device funnel/gpu=share-25 IMAGE PROGRAM\n",
     run_cdi},
    {NULL, NULL, NULL, NULL},
};
