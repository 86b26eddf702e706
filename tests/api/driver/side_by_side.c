/* SPDX-License-Identifier: Apache-2.0 */
/* See side_by_side.h. */
#include "side_by_side.h"

#include <stdio.h>
#include <stdlib.h>

#define GRID 2048
#define POLLS 2000
#define TRIES 50
#define MAX_TEXT 16384

/* Two counters of blocks by the number of their multiprocessor, then a counter of those without a
 * role, then a word for each role. Each has a cache line of its own. The roles' words need no
 * atomic additions, so the barrier works even where those do not. */
#define GONE 256
#define MEETING 384
#define CONTROL_SIZE 1024
#define ENDED 0x7fffffff

bool side_by_side_prints;

static const char declarations[] =
    ".version 8.4\n.target sm_90\n.address_size 64\n"
    ".visible .entry test(.param .u64 p_control, .param .u64 p_data, .param .u64 p_results)\n{\n"
    ".reg .b32 %role, %lane, %round, %target, %seen, %a, %b, %c, %d;\n"
    ".reg .b64 %control, %own, %data, %results, %la, %lb, %lc, %ld;\n.reg .pred %p, %q;\n";

static const char claim[] =
    "ld.param.u64 %%control, [p_control];\nld.param.u64 %%data, [p_data];\n"
    "ld.param.u64 %%results, [p_results];\nmov.u32 %%lane, %%tid.x;\n"
    "mov.u32 %%a, %%smid;\nand.b32 %%a, %%a, 1;\n"
    "mad.wide.u32 %%la, %%a, 128, %%control;\nmov.u32 %%role, 0;\nsetp.eq.u32 %%p, %%lane, 0;\n"
    "@%%p atom.relaxed.gpu.global.add.u32 %%role, [%%la], 1;\n"
    "shfl.sync.idx.b32 %%role, %%role, 0, 31, 0xffffffff;\nmul.lo.u32 %%role, %%role, %u;\n"
    "mad.lo.u32 %%role, %%a, %u, %%role;\n"
    "mov.u32 %%b, 0;\nsetp.ge.u32 %%p, %%role, %u;\n@%%p bra surplus;\n"
    "mad.wide.u32 %%own, %%role, 128, %%control;\nmov.u32 %%target, 1;\nbra begin;\n";

/* Ends, unless all roles have an owner, after a while. */
static const char surplus[] =
    "surplus:\nmov.u32 %%c, 1;\n%sadd.u32 %%b, %%b, 1;\nsetp.lt.u32 %%p, %%b, %u;\n"
    "setp.eq.and.u32 %%p, %%c, 0, %%p;\n@%%p bra surplus;\nsetp.eq.u32 %%p, %%lane, 0;\n"
    "setp.eq.and.u32 %%p, %%c, 0, %%p;\n"
    "@%%p red.relaxed.gpu.global.add.u32 [%%control+%u], 1;\nexit;\n"
    "begin:\nmov.u32 %%round, 0;\n";

/* Ends when too few blocks are left for the roles without owner. */
static const char meet[] =
    "again:\nbar.warp.sync 0xffffffff;\nst.release.gpu.global.u32 [%%own+%u], %%target;\n"
    "wait:\nld.relaxed.gpu.global.u32 %%seen, [%%control+%u];\nsetp.gt.u32 %%p, %%seen, %u;\n"
    "@%%p exit;\nmov.u32 %%c, %%target;\n%ssetp.lt.u32 %%p, %%c, %%target;\n@%%p bra wait;\n"
    "bar.warp.sync 0xffffffff;\nadd.u32 %%target, %%target, 1;\n";

static const char repeat[] = "bar.warp.sync 0xffffffff;\nadd.u32 %%round, %%round, 1;\n"
                             "setp.lt.u32 %%p, %%round, %u;\n@%%p bra again;\n";

static const char finish[] = "bar.warp.sync 0xffffffff;\nmov.u32 %%target, %u;\n"
                             "st.release.gpu.global.u32 [%%own+%u], %%target;\nexit;\n}\n";

/* c: the least of itself and the roles' words. */
static void write_least(const struct side_by_side *test, char *text)
{
    for (unsigned role = 0; role < test->roles; role++)
        text += sprintf(text,
                        "ld.acquire.gpu.global.u32 %%seen, [%%control+%u];\n"
                        "min.u32 %%c, %%c, %%seen;\n",
                        MEETING + 128 * role);
}

static const char *or_nothing(const char *text)
{
    return text ? text : "";
}

static void write_text(const struct side_by_side *test, char *text)
{
    char least[512];

    write_least(test, least);
    int n = sprintf(text, "%s%s", declarations, or_nothing(test->registers));
    n += sprintf(text + n, claim, test->takes_turns ? 1 : 2, test->takes_turns ? GRID : 1,
                 test->roles);
    n += sprintf(text + n, surplus, least, POLLS, GONE);
    n += sprintf(text + n, "%s", or_nothing(test->before));
    n += sprintf(text + n, meet, MEETING, GONE, GRID - test->roles, least);
    n += sprintf(text + n, "%s", test->each);
    n += sprintf(text + n, repeat, test->rounds);
    n += sprintf(text + n, "%s", or_nothing(test->after));
    sprintf(text + n, finish, ENDED, MEETING);
}

static bool all_ended(CUdeviceptr control, unsigned roles)
{
    bool ended = true;

    for (unsigned role = 0; role < roles; role++)
        ended = ended && word_at(control + MEETING + 128 * role) == ENDED;
    return ended;
}

static CUdeviceptr copy_of(struct shared_area area)
{
    CUdeviceptr copy;

    MUST(cuMemAlloc_v2(&copy, area.size));
    MUST(cuMemcpyHtoD_v2(copy, area.bytes, area.size));
    return copy;
}

/* False when the blocks did not find together. */
static bool try_once(CUfunction kernel, const struct side_by_side *test, struct shared_area data,
                     struct shared_area results)
{
    CUdeviceptr control = make_words(CONTROL_SIZE / 4, 0);
    CUdeviceptr device_data = copy_of(data), device_results = copy_of(results);
    void *parameters[] = {&control, &device_data, &device_results};
    bool ran;

    MUST(cuLaunchKernel(kernel, GRID, 1, 1, LANES, 1, 1, 0, NULL, parameters, NULL));
    MUST(cuCtxSynchronize());
    ran = all_ended(control, test->roles);
    if (ran) {
        MUST(cuMemcpyDtoH_v2(data.bytes, device_data, data.size));
        MUST(cuMemcpyDtoH_v2(results.bytes, device_results, results.size));
    }
    MUST(cuMemFree_v2(control));
    MUST(cuMemFree_v2(device_data));
    MUST(cuMemFree_v2(device_results));
    return ran;
}

bool run_side_by_side(const struct side_by_side *test, struct shared_area data,
                      struct shared_area results)
{
    static char text[MAX_TEXT];
    CUmodule module;
    CUfunction kernel;
    bool ran = false;

    write_text(test, text);
    if (side_by_side_prints) {
        printf("// %s\n%s", test->name, text);
        return false;
    }
    MUST(cuModuleLoadData(&module, text));
    kernel = get_kernel(module, "test");
    for (unsigned i = 0; i < TRIES && !ran; i++)
        ran = try_once(kernel, test, data, results);
    if (!ran) {
        printf("%s: no two multiprocessors of even and odd number took blocks\n", test->name);
        check_true(false, "side by side", __FILE__, __LINE__);
    }
    MUST(cuModuleUnload(module));
    return ran;
}
