/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs random kernels on whatever libcuda.so.1 is: the software GPU, Funnel or a GPU. It prints a
 * hash of each kernel's results, or compares the hashes with those of another device.
 *
 *     run_kernels [--seeds A-B] [--check FILE]
 *     run_kernels [--seeds A-B] --vectors [--check FILE]   on the software GPU in all widths
 *     run_kernels --print SEED [--limit N]                 the kernel's text
 *     run_kernels --write DIRECTORY [--seeds A-B]          kernels to files
 *     run_kernels --trace [--seeds A-B]                    what each statement changes
 *     run_kernels --dump SEED [--limit N]                  all registers of all threads
 *     run_kernels --all-rows                               the text of a kernel with all rows
 *
 * With --optimization N (0 to 4) a GPU's driver compiles at that level. What is equal to the
 * software GPU at 0 and differs at 4 is the compiler's doing.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_generate.h"

#define THREADS (KERNEL_BLOCKS * KERNEL_MAX_THREADS)
#define SCRATCH 128
#define STATE_BYTES (THREADS * KERNEL_STATE)
#define MEMORY_BYTES (STATE_BYTES + THREADS * SCRATCH)
#define NO_LIMIT 1000000u

/* ---- The driver ---- */

static struct {
    int (*cuInit)(unsigned);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuMemAlloc_v2)(unsigned long long *, size_t);
    int (*cuMemcpyHtoD_v2)(unsigned long long, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, unsigned long long, size_t);
    int (*cuModuleLoadDataEx)(void **, const void *, unsigned, int *, void **);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuModuleUnload)(void *);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
} cuda;

static unsigned long long memory;
static unsigned optimization = 4; /* the driver's own default */
static char log_text[4096];

static void fail(const char *what, int result)
{
    fprintf(stderr, "run_kernels: %s: error %d\n", what, result);
    exit(2);
}

static void check(const char *what, int result)
{
    if (result)
        fail(what, result);
}

static void load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "run_kernels: %s\n", dlerror());
        exit(2);
    }
#define LOAD(name)                                    \
    do {                                              \
        *(void **)&cuda.name = dlsym(library, #name); \
        if (!cuda.name)                               \
            fail(#name " is not in libcuda.so.1", 0); \
    } while (0)
    LOAD(cuInit);
    LOAD(cuDevicePrimaryCtxRetain);
    LOAD(cuCtxSetCurrent);
    LOAD(cuMemAlloc_v2);
    LOAD(cuMemcpyHtoD_v2);
    LOAD(cuMemcpyDtoH_v2);
    LOAD(cuModuleLoadDataEx);
    LOAD(cuModuleGetFunction);
    LOAD(cuModuleUnload);
    LOAD(cuLaunchKernel);
#undef LOAD
}

static void open_device(void)
{
    void *context;
    load_driver();
    check("cuInit", cuda.cuInit(0));
    check("cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain(&context, 0));
    check("cuCtxSetCurrent", cuda.cuCtxSetCurrent(context));
    check("cuMemAlloc", cuda.cuMemAlloc_v2(&memory, MEMORY_BYTES));
}

/* ---- Kernels ---- */

struct outcome {
    uint64_t result;
    uint32_t text;
    bool done;
};

static uint32_t text_hash(const struct kernel *kernel)
{
    return (uint32_t)kernel_hash(kernel->text, (unsigned)strlen(kernel->text));
}

static void *load(const struct kernel *kernel, uint64_t seed)
{
    enum { ERROR_LOG_BUFFER = 5, ERROR_LOG_BUFFER_SIZE_BYTES = 6, OPTIMIZATION_LEVEL = 7 };
    int options[] = {ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES, OPTIMIZATION_LEVEL};
    void *values[] = {log_text, (void *)(uintptr_t)sizeof(log_text),
                      (void *)(uintptr_t)optimization};
    void *module;
    int result = cuda.cuModuleLoadDataEx(&module, kernel->text, 3, options, values);
    if (result) {
        fprintf(stderr, "run_kernels: seed %llu does not load, error %d: %s\n",
                (unsigned long long)seed, result, log_text);
        exit(2);
    }
    return module;
}

/* Leaves registers and memory of all threads in `bytes`. */
static void run_kernel(const struct kernel *kernel, uint64_t seed, unsigned char *bytes)
{
    void *module = load(kernel, seed), *function;
    unsigned long long states = memory, scratches = memory + STATE_BYTES;
    void *arguments[] = {&states, &scratches};
    kernel_input(seed, bytes, MEMORY_BYTES);
    check("cuMemcpyHtoD", cuda.cuMemcpyHtoD_v2(memory, bytes, MEMORY_BYTES));
    check("cuModuleGetFunction", cuda.cuModuleGetFunction(&function, module, "kernel"));
    check("cuLaunchKernel", cuda.cuLaunchKernel(function, KERNEL_BLOCKS, 1, 1, kernel->threads, 1,
                                                1, 0, NULL, arguments, NULL));
    int result = cuda.cuMemcpyDtoH_v2(bytes, memory, MEMORY_BYTES);
    if (result) {
        fprintf(stderr, "run_kernels: seed %llu fails\n", (unsigned long long)seed);
        fail("cuMemcpyDtoH", result);
    }
    check("cuModuleUnload", cuda.cuModuleUnload(module));
}

static struct outcome run_seed(uint64_t seed, unsigned limit)
{
    static unsigned char bytes[MEMORY_BYTES];
    struct kernel kernel = kernel_generate(seed, limit);
    run_kernel(&kernel, seed, bytes);
    struct outcome outcome = {
        .result = kernel_hash(bytes, MEMORY_BYTES), .text = text_hash(&kernel), .done = true};
    free(kernel.text);
    return outcome;
}

/* ---- Ways to use it ---- */

struct request {
    unsigned long long first;
    unsigned long long last;
    unsigned limit;
    const char *check;
    const char *directory;
};

static void print_results(const struct request *request)
{
    open_device();
    printf("generator %d\n", KERNEL_GENERATOR);
    for (unsigned long long seed = request->first; seed <= request->last; seed++) {
        struct outcome outcome = run_seed(seed, request->limit);
        printf("%llu %016llx %08x\n", seed, (unsigned long long)outcome.result, outcome.text);
        fflush(stdout);
    }
}

static void print_kernel(unsigned long long seed, unsigned limit)
{
    struct kernel kernel = kernel_generate(seed, limit);
    printf("// seed %llu: %u blocks of %u threads, %u statements\n%s", seed, KERNEL_BLOCKS,
           kernel.threads, kernel.statements, kernel.text);
    free(kernel.text);
}

static void write_kernels(const struct request *request)
{
    for (unsigned long long seed = request->first; seed <= request->last; seed++) {
        char path[4096];
        struct kernel kernel = kernel_generate(seed, request->limit);
        snprintf(path, sizeof(path), "%s/%llu.ptx", request->directory, seed);
        FILE *file = fopen(path, "w");
        if (!file || fputs(kernel.text, file) < 0 || fclose(file) != 0) {
            perror(path);
            exit(2);
        }
        free(kernel.text);
    }
}

/* ---- What each statement changes ---- */

static const char *register_after(const char *name, unsigned *ret_end)
{
    unsigned at = *ret_end;
    while (at < KERNEL_STATE && strcmp(kernel_register_at(at), name) == 0)
        at++;
    *ret_end = at;
    return at < KERNEL_STATE ? kernel_register_at(at) : NULL;
}

static uint32_t register_hash(const unsigned char *bytes, unsigned from, unsigned to)
{
    static unsigned char values[THREADS * 8];
    unsigned size = 0;
    for (unsigned thread = 0; thread < THREADS && to - from <= 8; thread++) {
        memcpy(values + size, bytes + thread * KERNEL_STATE + from, to - from);
        size += to - from;
    }
    return (uint32_t)kernel_hash(values, size);
}

static void print_changes(const unsigned char *bytes, uint32_t *known)
{
    unsigned from = 0, index = 0;
    while (from < KERNEL_STATE) {
        unsigned to = from;
        const char *name = kernel_register_at(from);
        char copy[16];
        snprintf(copy, sizeof(copy), "%s", name);
        register_after(copy, &to);
        uint32_t hash = register_hash(bytes, from, to);
        if (known[index] != hash)
            printf(" %s=%08x", copy, hash);
        known[index++] = hash;
        from = to;
    }
    uint32_t hash = (uint32_t)kernel_hash(bytes + STATE_BYTES, THREADS * SCRATCH);
    if (known[index] != hash)
        printf(" memory=%08x", hash);
    known[index] = hash;
}

static void trace_seed(unsigned long long seed)
{
    static unsigned char bytes[MEMORY_BYTES];
    uint32_t known[KERNEL_STATE] = {0};
    for (unsigned limit = 0, count = 0; limit <= count; limit++) {
        struct kernel kernel = kernel_generate(seed, limit);
        count = kernel.statements;
        run_kernel(&kernel, seed, bytes);
        free(kernel.text);
        printf("%llu %u:", seed, limit);
        print_changes(bytes, known);
        printf("\n");
    }
    fflush(stdout);
}

static void trace_kernels(const struct request *request)
{
    open_device();
    for (unsigned long long seed = request->first; seed <= request->last; seed++)
        trace_seed(seed);
}

static void dump_kernel(unsigned long long seed, unsigned limit)
{
    static unsigned char bytes[MEMORY_BYTES];
    struct kernel kernel = kernel_generate(seed, limit);
    open_device();
    run_kernel(&kernel, seed, bytes);
    for (unsigned thread = 0; thread < KERNEL_BLOCKS * kernel.threads; thread++) {
        printf("%u:", thread);
        for (unsigned from = 0, to = 0; from < KERNEL_STATE; from = to) {
            char name[16];
            uint64_t value = 0;
            snprintf(name, sizeof(name), "%s", kernel_register_at(from));
            register_after(name, &to);
            memcpy(&value, bytes + thread * KERNEL_STATE + from, to - from <= 8 ? to - from : 8);
            printf(" %s=%llx", name, (unsigned long long)value);
        }
        printf("\n");
    }
    free(kernel.text);
}

/* ---- Comparisons ---- */

static struct outcome *shared_outcomes(size_t count)
{
    struct outcome *outcomes = mmap(NULL, (count + 1) * sizeof(*outcomes), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcomes == MAP_FAILED) {
        perror("run_kernels: mmap");
        exit(2);
    }
    return outcomes;
}

static void run_into(const struct request *request, struct outcome *outcomes)
{
    open_device();
    for (unsigned long long seed = request->first; seed <= request->last; seed++)
        outcomes[seed - request->first] = run_seed(seed, request->limit);
}

/* In a process of its own, for the width is chosen when the driver is loaded. */
static pid_t start_width(const struct request *request, const char *width, struct outcome *outcomes)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    setenv("FUNNEL_SOFT_VECTORS", width, 1);
    run_into(request, outcomes);
    exit(0);
}

static void await(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "run_kernels: a run did not end well\n");
        exit(2);
    }
}

static unsigned compare_widths(const struct request *request, struct outcome *const *found,
                               const char *const *names, unsigned count)
{
    unsigned differ = 0;
    for (unsigned long long seed = request->first; seed <= request->last; seed++) {
        for (unsigned i = 1; i < count; i++) {
            if (found[i][seed - request->first].result == found[0][seed - request->first].result)
                continue;
            printf("seed %llu: %s and %s differ\n", seed, names[0], names[i]);
            differ++;
        }
    }
    return differ;
}

/* The file holds what print_results prints. A kernel whose text is another one by now cannot be
 * compared; most can, or the file has to be made anew. */
static unsigned compare_file(const struct request *request, const struct outcome *found)
{
    FILE *file = fopen(request->check, "r");
    int generator;
    if (!file || fscanf(file, "generator %d", &generator) != 1) {
        fprintf(stderr, "run_kernels: %s does not hold results of kernels\n", request->check);
        exit(2);
    }
    if (generator != KERNEL_GENERATOR) {
        fprintf(stderr,
                "run_kernels: %s is of generator %d and this is generator %d: run the seeds on a "
                "GPU again and replace the file\n",
                request->check, generator, KERNEL_GENERATOR);
        exit(2);
    }
    unsigned long long seed, result;
    unsigned text, compared = 0, changed = 0, differ = 0;
    while (fscanf(file, "%llu %llx %x", &seed, &result, &text) == 3) {
        if (seed < request->first || seed > request->last)
            continue;
        const struct outcome *outcome = &found[seed - request->first];
        if (outcome->text != text) {
            changed++;
            continue;
        }
        compared++;
        if (outcome->result != result) {
            printf("seed %llu: %016llx, but %s has %016llx\n", seed,
                   (unsigned long long)outcome->result, request->check, result);
            differ++;
        }
    }
    fclose(file);
    printf("%u kernels compared with %s, %u differ, %u are other kernels since\n", compared,
           request->check, differ, changed);
    if (compared <= changed) {
        printf("the opcode table has changed so much that the file says little: run the seeds on "
               "a GPU again and replace it\n");
        return differ + 1;
    }
    return differ;
}

static unsigned run_widths(const struct request *request)
{
    static const char *const names[] = {"sse2", "avx2", "avx512"};
    struct outcome *found[3];
    pid_t children[3];
    size_t count = (size_t)(request->last - request->first + 1);
    for (unsigned i = 0; i < 3; i++) {
        found[i] = shared_outcomes(count);
        children[i] = start_width(request, names[i], found[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        await(children[i]);
    unsigned differ = compare_widths(request, found, names, 3);
    printf("%zu kernels in 3 widths, %u differ\n", count, differ);
    return differ + (request->check ? compare_file(request, found[0]) : 0);
}

static unsigned run_once(const struct request *request)
{
    if (!request->check) {
        print_results(request);
        return 0;
    }
    struct outcome *found = shared_outcomes((size_t)(request->last - request->first + 1));
    run_into(request, found);
    return compare_file(request, found);
}

static void usage(void)
{
    fprintf(stderr, "usage: run_kernels [--seeds A-B] [--vectors] [--check FILE] | --trace | "
                    "--print SEED | --dump SEED | --write DIRECTORY | --all-rows, [--limit N] "
                    "[--optimization N]\n");
    exit(2);
}

enum action { RUN, RUN_WIDTHS, PRINT, DUMP, WRITE, TRACE, ALL_ROWS };

static enum action parse(int count, char **words, struct request *request)
{
    enum action action = RUN;
    for (int i = 1; i < count; i++) {
        const char *word = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
        bool takes_value = true;
        if (strcmp(word, "--seeds") == 0 && value &&
            sscanf(value, "%llu-%llu", &request->first, &request->last) == 2 &&
            request->first <= request->last && request->last - request->first < 1u << 24)
            ;
        else if (strcmp(word, "--limit") == 0 && value)
            request->limit = (unsigned)atoi(value);
        else if (strcmp(word, "--optimization") == 0 && value &&
                 sscanf(value, "%u", &optimization) == 1 && optimization <= 4)
            ;
        else if (strcmp(word, "--check") == 0 && value)
            request->check = value;
        else if (strcmp(word, "--write") == 0 && value)
            action = WRITE, request->directory = value;
        else if ((strcmp(word, "--print") == 0 || strcmp(word, "--dump") == 0) && value)
            action = word[2] == 'p' ? PRINT : DUMP, request->first = strtoull(value, NULL, 10);
        else
            takes_value = false;
        if (takes_value)
            i++;
        else if (strcmp(word, "--vectors") == 0)
            action = RUN_WIDTHS;
        else if (strcmp(word, "--trace") == 0)
            action = TRACE;
        else if (strcmp(word, "--all-rows") == 0)
            action = ALL_ROWS;
        else
            usage();
    }
    return action;
}

int main(int count, char **words)
{
    struct request request = {.first = 0, .last = 99, .limit = NO_LIMIT};
    switch (parse(count, words, &request)) {
    case RUN_WIDTHS:
        return run_widths(&request) != 0;
    case PRINT:
        print_kernel(request.first, request.limit);
        return 0;
    case DUMP:
        dump_kernel(request.first, request.limit);
        return 0;
    case WRITE:
        write_kernels(&request);
        return 0;
    case TRACE:
        trace_kernels(&request);
        return 0;
    case ALL_ROWS:
        fputs(kernel_of_all_rows().text, stdout);
        return 0;
    case RUN:
        break;
    }
    return run_once(&request) != 0;
}
