/* SPDX-License-Identifier: Apache-2.0 */
/*
 * funnel divert: nvidia-cuda-mps-control in /usr/bin is Funnel's, for what starts NVIDIA's program
 * there whatever PATH is. The DRA driver of Kubernetes does so in a chroot. It is a script, which
 * gives Funnel's program NVIDIA's directories, where those who start it look for its socket and its
 * log. NVIDIA's file stays beside it under another name. dpkg-divert renames it, so that upgrades
 * of its package go there, too. Without dpkg a plain rename does.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "cli.h"
#include "fd.h"
#include "text.h"
#include "text_file.h"

#define SYSTEM_FOLDER "/usr/bin"
#define KEPT_SUFFIX ".nvidia"
#define MARK "# Made by funnel divert --system; funnel divert --system --undo removes it."
#define SCRIPT_MAX (PATH_MAX + 1024)

/* Paths of one program. Those that end with _here have the root before them. */
struct diversion {
    const char *name, *root;
    char place[PATH_MAX], place_here[PATH_MAX]; /* /usr/bin/NAME */
    char kept[PATH_MAX], kept_here[PATH_MAX];   /* where NVIDIA's file is kept */
    char own[PATH_MAX];                         /* Funnel's program, or "" */
};

static bool exists(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

/* ---- the script ---- */

static void write_script(const struct diversion *diversion, char ret_script[SCRIPT_MAX])
{
    text_format(ret_script, SCRIPT_MAX,
                "#!/bin/sh\n" MARK "\n"
                "# NVIDIA's program is kept as %.200s" KEPT_SUFFIX ".\n"
                "export CUDA_MPS_PIPE_DIRECTORY=\"${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}\"\n"
                "export CUDA_MPS_LOG_DIRECTORY=\"${CUDA_MPS_LOG_DIRECTORY:-/var/log/nvidia-mps}\"\n"
                "exec '%s' \"$@\"\n",
                diversion->place, diversion->own);
}

/* A script of this command, of whatever release. Symbolic links and programs are none. */
static bool is_ours(const struct diversion *diversion)
{
    _cleanup_free_ char *text = NULL;
    struct stat status;

    return lstat(diversion->place_here, &status) == 0 && S_ISREG(status.st_mode) &&
           !text_file_read(diversion->place_here, &text) &&
           text_starts_with(text, "#!/bin/sh\n" MARK "\n");
}

static bool is_current(const struct diversion *diversion)
{
    _cleanup_free_ char *text = NULL;
    char script[SCRIPT_MAX];

    write_script(diversion, script);
    return is_ours(diversion) && !text_file_read(diversion->place_here, &text) &&
           !strcmp(text, script);
}

/* ---- the paths ---- */

/* An installation below /usr has the program in a folder of its own. */
static void find_own(struct diversion *diversion)
{
    static const char *const folders[] = {"lib/funnel/bin", "bin"};
    char name[PATH_MAX], here[PATH_MAX];

    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        if (path_join(folders[i], diversion->name, name, sizeof(name)) ||
            path_of_sibling(name, diversion->own, sizeof(diversion->own)) ||
            !text_format(here, sizeof(here), "%s%s", diversion->root, diversion->own))
            continue;
        if (!access(here, X_OK) && strcmp(diversion->own, diversion->place))
            return;
    }
    *diversion->own = '\0';
}

/* 0, or 1 after an error message. */
static int find_paths(const char *name, const char *root, struct diversion *diversion)
{
    *diversion = (struct diversion){.name = name, .root = root};
    if (!text_format(diversion->place, PATH_MAX, SYSTEM_FOLDER "/%s", name) ||
        !text_format(diversion->kept, PATH_MAX, SYSTEM_FOLDER "/%s" KEPT_SUFFIX, name) ||
        !text_format(diversion->place_here, PATH_MAX, "%s" SYSTEM_FOLDER "/%s", root, name) ||
        !text_format(diversion->kept_here, PATH_MAX, "%s" SYSTEM_FOLDER "/%s" KEPT_SUFFIX, root,
                     name))
        return cli_fail("the path of the root is too long");
    find_own(diversion);
    return 0;
}

/* ---- dpkg ---- */

static bool has_dpkg(const char *root)
{
    char database[PATH_MAX];

    return text_format(database, sizeof(database), "%s/var/lib/dpkg/status", root) &&
           !access(database, F_OK) && !system("command -v dpkg-divert >/dev/null 2>&1");
}

/* `action` is --add or --remove. Messages of dpkg-divert about errors are the user's to see. */
static int run_dpkg_divert(const struct diversion *diversion, const char *action)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        execlp("dpkg-divert", "dpkg-divert", "--root", *diversion->root ? diversion->root : "/",
               "--quiet", "--local", "--rename", "--divert", diversion->kept, action,
               diversion->place, NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return cli_fail("dpkg-divert %s %s failed", action, diversion->place);
    return 0;
}

/* ---- files ---- */

static int fail_to_change(const char *path, int error)
{
    return cli_fail("cannot change %s: %s%s", path, strerror(error),
                    error == EACCES || error == EPERM ? "; this takes root's rights" : "");
}

/* A file that is there is never replaced. Some file systems can do that by a second link only. */
static int move_file(const char *from, const char *to)
{
    int failed = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);

    if (failed && (errno == EINVAL || errno == ENOSYS))
        failed = link(from, to) || unlink(from);
    return failed ? fail_to_change(errno == EEXIST ? to : from, errno) : 0;
}

static int fail_with_both(const struct diversion *diversion)
{
    return cli_fail("%s and %s both exist, and only one can be the program: remove the one that is "
                    "not NVIDIA's, or is older",
                    diversion->place_here, diversion->kept_here);
}

static int keep_file(const struct diversion *diversion)
{
    if (exists(diversion->place_here) && exists(diversion->kept_here))
        return fail_with_both(diversion);
    if (has_dpkg(diversion->root) && run_dpkg_divert(diversion, "--add"))
        return 1;
    return exists(diversion->place_here) ? move_file(diversion->place_here, diversion->kept_here)
                                         : 0;
}

static int give_file_back(const struct diversion *diversion)
{
    if (has_dpkg(diversion->root) && run_dpkg_divert(diversion, "--remove"))
        return 1;
    return exists(diversion->kept_here) ? move_file(diversion->kept_here, diversion->place_here)
                                        : 0;
}

static int remove_script(const struct diversion *diversion)
{
    return unlink(diversion->place_here) ? fail_to_change(diversion->place_here, errno) : 0;
}

static int check_folder(const struct diversion *diversion)
{
    char folder[PATH_MAX];

    text_format(folder, sizeof(folder), "%s" SYSTEM_FOLDER, diversion->root);
    return access(folder, W_OK) ? fail_to_change(folder, errno) : 0;
}

static int create_script(const struct diversion *diversion)
{
    _cleanup_fd_ int fd =
        open(diversion->place_here, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    char script[SCRIPT_MAX];
    int error;

    write_script(diversion, script);
    if (fd < 0)
        return -errno;
    error = write_all(fd, script, strlen(script));
    if (!error && (fchmod(fd, 0755) || fsync(fd)))
        error = -errno;
    if (error)
        unlink(diversion->place_here);
    return error;
}

/* ---- there and back ---- */

static int put_script(const struct diversion *diversion)
{
    int error = create_script(diversion);

    if (!error)
        return 0;
    give_file_back(diversion);
    return fail_to_change(diversion->place_here, -error);
}

static int divert(const struct diversion *diversion)
{
    if (!*diversion->own || strchr(diversion->own, '\''))
        return cli_fail("there is no %s of Funnel below %s/: install Funnel there first, at the "
                        "same place as here",
                        diversion->name, diversion->root);
    if (is_current(diversion)) {
        printf("%s is Funnel's already\n", diversion->place_here);
        return 0;
    }
    if (check_folder(diversion) ||
        (is_ours(diversion) ? remove_script(diversion) : keep_file(diversion)) ||
        put_script(diversion))
        return 1;
    printf("%s is Funnel's now", diversion->place_here);
    printf(exists(diversion->kept_here) ? ", and NVIDIA's is %s\n" : "; NVIDIA's was not there\n",
           diversion->kept_here);
    return 0;
}

static int undo(const struct diversion *diversion)
{
    bool ours = is_ours(diversion);

    if (!ours && !exists(diversion->kept_here)) {
        printf("%s was not diverted\n", diversion->place_here);
        return 0;
    }
    if (check_folder(diversion))
        return 1;
    if (!ours && exists(diversion->place_here))
        return fail_with_both(diversion);
    if ((ours && remove_script(diversion)) || give_file_back(diversion))
        return 1;
    printf(exists(diversion->place_here) ? "%s is NVIDIA's again\n" : "%s is gone\n",
           diversion->place_here);
    return 0;
}

/* ---- the command line ---- */

struct divert_options {
    bool system, server, undo;
    const char *root; /* without / at its end */
};

/* 0, or 2 after an error message. */
static int parse_divert(int argc, char **argv, struct divert_options *options)
{
    static const struct option known[] = {{"system", no_argument, NULL, 's'},
                                          {"server", no_argument, NULL, 'S'},
                                          {"undo", no_argument, NULL, 'u'},
                                          {"root", required_argument, NULL, 'r'},
                                          {NULL, 0, NULL, 0}};
    static char root[PATH_MAX];
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 's')
            options->system = true;
        else if (option == 'S')
            options->server = true;
        else if (option == 'u')
            options->undo = true;
        else if (option == 'r' && realpath(optarg, root))
            options->root = strcmp(root, "/") ? root : "";
        else if (option == 'r')
            return cli_usage("--root: %s: %s", optarg, strerror(errno));
        else
            return cli_wrong_option();
    }
    if (optind < argc)
        return cli_usage("it takes no argument");
    return options->system
               ? 0
               : cli_usage("it changes programs of the machine: give --system for that");
}

static int change(const char *name, const struct divert_options *options)
{
    struct diversion diversion;

    if (find_paths(name, options->root, &diversion))
        return 1;
    return options->undo ? undo(&diversion) : divert(&diversion);
}

static int run_divert(int argc, char **argv)
{
    struct divert_options options = {.root = ""};
    int status = parse_divert(argc, argv, &options);

    if (status)
        return status;
    status = change("nvidia-cuda-mps-control", &options);
    /* A diversion with --server is undone without it, too. */
    if (!status && (options.server || options.undo))
        status = change("nvidia-cuda-mps-server", &options);
    if (!status && !options.undo)
        puts("Undo it with: funnel divert --system --undo");
    return status;
}

const struct subcommand divert_subcommands[] = {
    {"divert", "put nvidia-cuda-mps-control where schedulers look for it",
     "Usage: funnel divert --system [--server] [--undo] [--root DIRECTORY]\n\n"
     "Makes /usr/bin/nvidia-cuda-mps-control Funnel's, for what starts NVIDIA's program there, "
     "such "
     "as\n"
     "the DRA driver of Kubernetes. NVIDIA's file is kept as nvidia-cuda-mps-control.nvidia: where "
     "there\n"
     "is dpkg by dpkg-divert, so that upgrades of NVIDIA's package go there, too.\n\n"
     "      --system     required, since it changes programs of the machine\n"
     "      --server     nvidia-cuda-mps-server, too\n"
     "      --undo       take it back\n"
     "      --root DIR   in the system below DIR, such as a driver root; Funnel is to be installed "
     "there\n\n"
     "Examples:\n"
     "  funnel divert --system\n"
     "  funnel divert --system --undo\n",
     run_divert},
    {NULL, NULL, NULL, NULL},
};
