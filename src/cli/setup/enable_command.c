/* SPDX-License-Identifier: Apache-2.0 */
/*
 * funnel enable, funnel disable: Funnel's libcuda.so.1 for all programs of the machine, through the
 * dynamic linker's configuration. Or for a user, through the environment of that user's logins.
 * Where no daemon runs, the library passes calls on to the driver. With --nvml the library for
 * monitors comes, too.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "text.h"
#include "text_file.h"

#define SYSTEM_FILE "/etc/ld.so.conf.d/000-funnel.conf"
#define MARK " # funnel enable"

/* A library that programs are to find first. */
struct enabled_library {
    const char *folder, *name;
};

static const struct enabled_library client_library = {"lib/funnel", "libcuda.so.1"};
static const struct enabled_library nvml_library = {"lib/funnel/nvml", "libnvidia-ml.so.1"};

/* The folder of a library: 0, or 1 after an error message. */
static int find_folder(const struct enabled_library *wanted, char *ret_folder, size_t capacity)
{
    char library[PATH_MAX];

    if (path_of_sibling(wanted->folder, ret_folder, capacity) ||
        path_join(ret_folder, wanted->name, library, sizeof(library)))
        return cli_fail("cannot find the installation");
    if (access(library, R_OK))
        return cli_fail("%s is missing: the installation is incomplete", library);
    if (strpbrk(ret_folder, " \t\n:;\"'\\$`#"))
        return cli_fail("%s has a name that cannot stand in a search path", ret_folder);
    return 0;
}

/* ---- for the machine ---- */

static int run_ldconfig(void)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        execl("/sbin/ldconfig", "ldconfig", NULL);
        execl("/usr/sbin/ldconfig", "ldconfig", NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return cli_fail("ldconfig failed; programs find the library once it has run");
    return 0;
}

/* The library of that name that the linker's cache has first for this machine's programs. */
static bool first_in_cache(const char *name, char *ret_path, size_t capacity)
{
    FILE *list = popen("PATH=/sbin:/usr/sbin:/bin:/usr/bin ldconfig -p", "re");
    char line[PATH_MAX + 100];
    char start[64];
    bool found = false;

    text_format(start, sizeof(start), "\t%s (", name);
    while (list && fgets(line, sizeof(line), list)) {
        char *path = strstr(line, "=> ");

        if (found || !path || !strstr(line, start) || strstr(line, "(libc6)"))
            continue;
        path[strcspn(path, "\n")] = '\0';
        found = text_copy(ret_path, capacity, path + 3);
    }
    if (list)
        pclose(list);
    return found;
}

static int check_cache(const struct enabled_library *library, const char *folder)
{
    char first[PATH_MAX] = "nothing";

    if (first_in_cache(library->name, first, sizeof(first)) && text_starts_with(first, folder))
        return 0;
    return cli_fail("programs still find %s first: another file of /etc/ld.so.conf.d or "
                    "/etc/ld.so.conf names its folder before %s",
                    first, SYSTEM_FILE);
}

/* `nvml` is the second folder, or "". */
static int enable_system(const char *folder, const char *nvml)
{
    char text[2 * PATH_MAX + 200];
    int error;

    text_format(text, sizeof(text),
                "# Made by funnel enable --system; funnel disable --system "
                "removes it.\n%s\n%s%s",
                folder, nvml, *nvml ? "\n" : "");
    error = text_file_write(SYSTEM_FILE, text, 0644);
    if (error)
        return cli_fail("cannot write %s: %s", SYSTEM_FILE, strerror(-error));
    if (run_ldconfig() || check_cache(&client_library, folder) ||
        (*nvml && check_cache(&nvml_library, nvml)))
        return 1;
    printf("Wrote %s and ran ldconfig: programs that start from now on find\n"
           "%s/libcuda.so.1 first. Undo it with: funnel disable --system\n",
           SYSTEM_FILE, folder);
    return 0;
}

static int disable_system(void)
{
    if (unlink(SYSTEM_FILE)) {
        if (errno != ENOENT)
            return cli_fail("cannot remove %s: %s", SYSTEM_FILE, strerror(errno));
        printf("Funnel was not enabled for the machine: there is no %s\n", SYSTEM_FILE);
        return 0;
    }
    printf("Removed %s\n", SYSTEM_FILE);
    return run_ldconfig();
}

/* ---- for a user ---- */

/* Files that a login reads: the first two are made if they are missing, the others are shells' own,
 * which replace .profile where they exist. */
static const struct login_file {
    const char *name;
    bool make;
    const char *format;
} login_files[] = {
    {".config/environment.d/50-funnel.conf", true,
     "LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"},
    {".profile", true, "export LD_LIBRARY_PATH=\"%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"" MARK},
    {".bash_profile", false,
     "export LD_LIBRARY_PATH=\"%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"" MARK},
    {".zprofile", false, "export LD_LIBRARY_PATH=\"%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"" MARK},
};

#define LOGIN_FILES (sizeof(login_files) / sizeof(*login_files))

static int login_path(const struct login_file *file, char *ret_path, size_t capacity)
{
    const char *home = getenv("HOME");

    if (!home || *home != '/')
        return cli_fail("HOME names no directory");
    return path_join(home, file->name, ret_path, capacity) ? cli_fail("HOME is too long") : 0;
}

static bool is_own_file(const struct login_file *file)
{
    return !strstr(file->format, MARK);
}

/* 1: changed, 0: left as it was, or -errno. */
static int enable_in(const struct login_file *file, const char *path, const char *folders)
{
    char line[2 * PATH_MAX + 100], text[2 * PATH_MAX + 200];
    int error;

    if (!file->make && access(path, F_OK))
        return 0;
    text_format(line, sizeof(line), file->format, folders);
    if (!is_own_file(file))
        return text_file_mark(path, MARK, line);
    text_format(text, sizeof(text), "# Made by funnel enable --user\n%s\n", line);
    error = text_file_write(path, text, 0644);
    return error ? error : 1;
}

static int disable_in(const struct login_file *file, const char *path)
{
    if (!is_own_file(file))
        return text_file_mark(path, MARK, NULL);
    if (unlink(path) == 0)
        return 1;
    return errno == ENOENT ? 0 : -errno;
}

/* With folders, which a colon separates: enables; without: disables. */
static int change_user(const char *folders)
{
    unsigned changed = 0;

    for (unsigned i = 0; i < LOGIN_FILES; i++) {
        char path[PATH_MAX];
        int done;

        if (login_path(&login_files[i], path, sizeof(path)))
            return 1;
        done =
            folders ? enable_in(&login_files[i], path, folders) : disable_in(&login_files[i], path);
        if (done < 0)
            return cli_fail("cannot change %s: %s", path, strerror(-done));
        changed += (unsigned)done;
        if (done)
            printf("%s %s\n", !folders && is_own_file(&login_files[i]) ? "Removed" : "Changed",
                   path);
    }
    if (folders)
        printf("Programs of your next login find the libraries in %s first.\n"
               "Undo it with: funnel disable --user\n",
               folders);
    else if (!changed)
        puts("Funnel was not enabled for this user");
    return 0;
}

/* ---- the command line ---- */

struct enable_options {
    bool system; /* the machine, else this user; without an option root means the machine */
    bool nvml;
};

static int parse_options(int argc, char **argv, bool disables, struct enable_options *ret_options)
{
    static const struct option known[] = {{"system", no_argument, NULL, 's'},
                                          {"user", no_argument, NULL, 'u'},
                                          {"nvml", no_argument, NULL, 'n'},
                                          {NULL, 0, NULL, 0}};
    int option;

    *ret_options = (struct enable_options){.system = geteuid() == 0};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == '?')
            return cli_wrong_option();
        if (option == 'n' && disables)
            return cli_usage("--nvml is for funnel enable; this undoes all of it");
        if (option == 'n')
            ret_options->nvml = true;
        else
            ret_options->system = option == 's';
    }
    return optind < argc ? cli_usage("it takes no argument") : 0;
}

static int run_enable(int argc, char **argv)
{
    struct enable_options options;
    int status = parse_options(argc, argv, false, &options);
    char folder[PATH_MAX], nvml[PATH_MAX] = "", both[2 * PATH_MAX];

    if (status)
        return status;
    if (find_folder(&client_library, folder, sizeof(folder)) ||
        (options.nvml && find_folder(&nvml_library, nvml, sizeof(nvml))))
        return 1;
    text_format(both, sizeof(both), "%s%s%s", folder, *nvml ? ":" : "", nvml);
    return options.system ? enable_system(folder, nvml) : change_user(both);
}

static int run_disable(int argc, char **argv)
{
    struct enable_options options;
    int status = parse_options(argc, argv, true, &options);

    if (status)
        return status;
    return options.system ? disable_system() : change_user(NULL);
}

const struct subcommand enable_subcommands[] = {
    {"enable", "use Funnel in all programs, without funnel run",
     "Usage: funnel enable [--system | --user] [--nvml]\n\n"
     "Puts Funnel's libcuda.so.1 in front of NVIDIA's for programs that start from now on. Where\n"
     "no daemon runs, they use the driver directly, as without Funnel.\n\n"
     "  --system  for all programs of the machine, in /etc/ld.so.conf.d (default for root)\n"
     "  --user    for programs of your next login, through LD_LIBRARY_PATH in ~/.profile and\n"
     "            ~/.config/environment.d (default for others)\n"
     "  --nvml    Funnel's libnvidia-ml.so.1, too: nvidia-smi, nvitop and their like show the\n"
     "            programs in place of the server\n\n"
     "Programs that have a run path (RPATH) to NVIDIA's library, or open it by its full path, do\n"
     "not find Funnel's. Setuid programs always use the driver directly. FUNNEL_DIRECT=1 keeps "
     "one\n"
     "program away from Funnel.\n\n"
     "Examples:\n"
     "  funnel enable --system\n"
     "  funnel enable --user\n"
     "  funnel enable --system --nvml\n",
     run_enable},
    {"disable", "undo funnel enable",
     "Usage: funnel disable [--system | --user]\n\n"
     "Takes back what funnel enable has done. Programs that run keep the library they have.\n\n"
     "  --system  for the machine (default for root)\n"
     "  --user    for your logins (default for others)\n\n"
     "Examples:\n"
     "  funnel disable --system\n",
     run_disable},
    {NULL, NULL, NULL, NULL},
};
