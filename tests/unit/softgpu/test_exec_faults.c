/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels do wrong: the error of each, the message, and what becomes of other kernels.
 */
#include "machine.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
    ".version 8.6\n.target sm_90\n.address_size 64\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,"
    " .param .b64 s);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 s);\n"
    ".extern .func free(.param .b64 at);\n"
    ".global .align 1 .b8 message[6] = {120, 32, 62, 32, 49, 0};\n"
    ".global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};\n"
    ".func deep()\n{\n.reg .b32 %r<2>; .local .b8 room[64];\n"
    "st.local.u32 [room], 1;\ncall deep, ();\nret;\n}\n"
    ".visible .entry overflow()\n{\ncall deep, ();\nret;\n}\n"
    ".visible .entry store(.param .u64 to)\n{\n.reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [to];\nst.global.u32 [%rd1], 7;\nret;\n}\n"
    ".visible .entry shared(.param .u64 at)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
    ".shared .align 4 .b8 data[64];\n"
    "ld.param.u64 %rd1, [at];\nld.shared.u32 %r1, [%rd1];\nst.shared.u32 [data], %r1;\nret;\n}\n"
    ".visible .entry barrier(.param .u32 number)\n{\n.reg .b32 %r<2>;\n"
    "ld.param.u32 %r1, [number];\nbar.sync %r1;\nret;\n}\n"
    ".visible .entry jump(.param .u64 to)\n{\n.reg .b64 %rd<2>;\n"
    "prototype: .callprototype _ ();\n"
    "ld.param.u64 %rd1, [to];\ncall %rd1, (), prototype;\nret;\n}\n"
    ".visible .entry assertion()\n{\n.reg .b64 %rd<3>;\n"
    "mov.u64 %rd1, message;\nmov.u64 %rd2, file;\n"
    "{\n.param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;\n"
    "st.param.b64 [m], %rd1;\nst.param.b64 [f], %rd2;\nst.param.b32 [l], 12;\n"
    "st.param.b64 [n], %rd2;\nst.param.b64 [s], 1;\n"
    "call.uni __assertfail, (m, f, l, n, s);\n}\nret;\n}\n"
    ".visible .entry local(.param .u64 at)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
    ".local .align 4 .b8 depot[64];\n"
    "ld.param.u64 %rd1, [at];\nld.local.u32 %r1, [%rd1];\nst.local.u32 [depot], %r1;\nret;\n}\n"
    ".visible .entry branch(.param .u32 index)\n{\n.reg .b32 %r<2>;\n"
    "ld.param.u32 %r1, [index];\nT: .branchtargets A, B;\nbrx.idx %r1, T;\nA: ret;\nB: ret;\n}\n"
    ".visible .entry release(.param .u64 at)\n{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [at];\n"
    "{\n.param .b64 m;\nst.param.b64 [m], %rd1;\ncall.uni free, (m);\n}\nret;\n}\n"
    /* Only one thread of one block writes. */
    ".visible .entry one(.param .u64 to)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<9>; .reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nmov.u32 %r3, %ctaid.y;\n"
    "mov.u32 %r4, %ctaid.z;\nshl.b32 %r1, %r1, 24;\nmad.lo.u32 %r1, %r2, 0x10000, %r1;\n"
    "mad.lo.u32 %r1, %r3, 0x100, %r1;\nadd.u32 %r1, %r1, %r4;\nsetp.ne.u32 %p1, %r1, 0x21050301;\n"
    "@%p1 ret;\nst.global.u32 [%rd1], 7;\nret;\n}\n"
    /* Takes 1 MiB until there is no more, gives one back, and takes it again. */
    ".visible .entry exhaust(.param .u64 out)\n{\n.reg .b64 %rd<5>; .reg .b32 %r<3>;"
    " .reg .pred %p<2>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, 0;\nmov.u64 %rd3, 0;\nmore:\n"
    "{\n.param .b64 s; .param .b64 r;\nst.param.b64 [s], 1048576;\ncall.uni (r), malloc, (s);\n"
    "ld.param.b64 %rd2, [r];\n}\nsetp.eq.u64 %p1, %rd2, 0;\n@%p1 bra none;\nmov.u64 %rd3, %rd2;\n"
    "add.u32 %r1, %r1, 1;\nbra more;\nnone:\nst.global.u32 [%rd1], %r1;\n"
    "{\n.param .b64 s;\nst.param.b64 [s], %rd3;\ncall.uni free, (s);\n}\n"
    "{\n.param .b64 s; .param .b64 r;\nst.param.b64 [s], 1048576;\ncall.uni (r), malloc, (s);\n"
    "ld.param.b64 %rd2, [r];\n}\nst.global.u64 [%rd1+8], %rd2;\nret;\n}\n"
    ".visible .entry trapped()\n{\ntrap;\nret;\n}\n"
    ".visible .entry spin(.param .u64 flag)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;"
    " .reg .pred %p<2>;\nld.param.u64 %rd1, [flag];\nagain:\nld.volatile.global.u32 %r1, [%rd1];\n"
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra again;\nret;\n}\n";

static void expect(const char *kernel, uint64_t argument, CUresult expected, const char *words)
{
    struct machine *machine = machine_create_from(text);
    CUresult result = machine_launch(machine, kernel, 1, 1, 0, (void *[]){&argument});
    if (result != expected || !strstr(machine->message, words) ||
        strncmp(machine->message, "kernel ", 7) != 0 || !strstr(machine->message + 7, kernel) ||
        !strstr(machine->message, ", block (0,0,0), thread (0,0,0): ") ||
        !strstr(machine->message, ", PTX line "))
        fail_msg("%s: %d: %s", kernel, result, machine->message);
    machine_destroy(machine);
}

static void test_each_fault(void **state)
{
    expect("overflow", 0, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
    expect("store", 0x10, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal write of 4 bytes at 0x10");
    expect("store", 0x11, CUDA_ERROR_MISALIGNED_ADDRESS, "a misaligned access of 4 bytes at 0x11");
    expect("shared", 64, CUDA_ERROR_ILLEGAL_ADDRESS, "beyond the 64 bytes of shared memory");
    expect("shared", 2, CUDA_ERROR_MISALIGNED_ADDRESS, "a misaligned access");
    expect("shared", 0xfffffffffffffffc, CUDA_ERROR_ILLEGAL_ADDRESS, "at 0xfffffffffffffffc");
    expect("local", 1 << 20, CUDA_ERROR_ILLEGAL_ADDRESS, "at 0x100000, beyond the ");
    expect("branch", 2, CUDA_ERROR_ILLEGAL_INSTRUCTION, "a branch index of 2, beyond 2 targets");
    expect("release", 0x40, CUDA_ERROR_LAUNCH_FAILED, "free of 0x40");
    expect("barrier", 16, CUDA_ERROR_ILLEGAL_INSTRUCTION, "barrier 16, of 16");
    expect("jump", 0x1234, CUDA_ERROR_INVALID_PC, "a call to 0x1234");
    expect("assertion", 0, CUDA_ERROR_ASSERT, "assertion `x > 1` failed at a.cu:12");
    expect("trapped", 0, CUDA_ERROR_LAUNCH_FAILED, "trap");
}

/* The thread, the block and the line. */
static void test_place(void **state)
{
    struct machine *machine = machine_create_from(text);
    uint64_t address = 0x18;
    unsigned line = 1;
    assert_int_equal(machine_launch_3d(machine, "one", (uint32_t[]){2, 4, 3},
                                       (uint32_t[]){64, 8, 1}, 0, (void *[]){&address}),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    for (const char *at = text; at < strstr(text, "@%p1 ret;\nst.global"); at++)
        line += *at == '\n';
    char expected[256], other[256];
    const char format[] =
        "kernel one, block (%u,3,1), thread (33,5,0): an illegal write of 4 bytes "
        "at 0x18, PTX line %u";
    snprintf(expected, sizeof(expected), format, 0, line + 1);
    snprintf(other, sizeof(other), format, 1, line + 1);
    if (strcmp(machine->message, expected) != 0 && strcmp(machine->message, other) != 0)
        fail_msg("%s, not %s", machine->message, expected);
    machine_destroy(machine);
}

/* A name longer than a message is truncated, so that the rest of the message fits. */
static void test_endless_name(void **state)
{
    char name[1001] = "", kernel[1200];
    memset(name, 'n', sizeof(name) - 1);
    snprintf(kernel, sizeof(kernel),
             ".version 8.0\n.target sm_80\n.address_size 64\n"
             ".entry %s()\n{\ntrap;\n}\n",
             name);
    struct machine *machine = machine_create_from(kernel);
    assert_int_equal(machine_launch(machine, name, 1, 1, 0, NULL), CUDA_ERROR_LAUNCH_FAILED);
    assert_non_null(strstr(machine->message, "n, block (0,0,0), thread (0,0,0): trap, PTX line 6"));
    machine_destroy(machine);
}

/* No fault: a kernel that asks for too much is told so. */
static void test_exhausted_heap(void **state)
{
    struct machine *machine = machine_create_from(text);
    uint64_t *out = machine_memory(machine, 16);
    assert_int_equal(machine_launch(machine, "exhaust", 1, 1, 0, (void *[]){&out}), CUDA_SUCCESS);
    assert_int_equal(out[0], 8);
    assert_int_not_equal(out[1], 0);
    machine_destroy(machine);
}

/* ---- What else runs ---- */

struct end {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached;
    CUresult result;
    char message[512];
};

static void end_init(struct end *end)
{
    memset(end, 0, sizeof(*end));
    pthread_mutex_init(&end->lock, NULL);
    pthread_cond_init(&end->changed, NULL);
}

static void note_end(void *user, CUresult result, const char *message)
{
    struct end *end = user;
    pthread_mutex_lock(&end->lock);
    end->result = result;
    snprintf(end->message, sizeof(end->message), "%s", message);
    end->reached = true;
    pthread_cond_signal(&end->changed);
    pthread_mutex_unlock(&end->lock);
}

static CUresult end_wait(struct end *end)
{
    pthread_mutex_lock(&end->lock);
    while (!end->reached)
        pthread_cond_wait(&end->changed, &end->lock);
    pthread_mutex_unlock(&end->lock);
    return end->result;
}

/* Shared memory of which an SM fits one such block, and smaller ones beside it. */
#define MOST_OF_AN_SM (200 << 10)

/* A grid that spins until the word is not 0, in a space of its choice. */
static void start_spinning(struct machine *machine, struct sg_engine *engine, uint32_t *word,
                           struct sg_space *space, uint32_t blocks, uint32_t dynamic_shared,
                           struct end *end)
{
    struct sg_launch launch = {
        .instance = machine->instance,
        .kernel = (unsigned)sg_module_find_kernel(machine->module, "spin"),
        .grid = {blocks, 1, 1},
        .block = {64, 1, 1},
        .dynamic_shared = dynamic_shared,
        .params = &word,
        .params_size = sizeof(word),
        .space = space,
        .done = note_end,
        .user = end,
    };
    end_init(end);
    assert_int_equal(sg_engine_submit(engine, &launch), CUDA_SUCCESS);
}

/* Two grids want more blocks than there is room for; the fault of a small one, for which there is,
 * ends both, and no other. */
static void test_a_fault_ends_others(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_space *elsewhere = sg_space_create();
    static uint32_t foreign;
    struct end runs, waits, stranger;
    uint32_t *word = machine_memory(machine, 4);
    assert_int_equal(
        sg_space_add(elsewhere, (uintptr_t)&foreign, sizeof(foreign), SG_READ | SG_WRITE), 0);
    start_spinning(machine, machine->engine, &foreign, elsewhere, 1, 0, &stranger);
    start_spinning(machine, machine->engine, word, machine->space, 4, MOST_OF_AN_SM, &runs);
    start_spinning(machine, machine->engine, word, machine->space, 8, MOST_OF_AN_SM, &waits);
    assert_int_equal(machine_launch(machine, "trapped", 1, 1, 0, NULL), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(end_wait(&runs), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(end_wait(&waits), CUDA_ERROR_LAUNCH_FAILED);
    assert_non_null(strstr(runs.message, "kernel trapped"));
    __atomic_store_n(&foreign, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(end_wait(&stranger), CUDA_SUCCESS);
    machine_destroy(machine);
    sg_space_destroy(elsewhere);
}

static void test_timeout(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine =
        sg_engine_create(&(struct sg_engine_config){.sm_count = 2, .timeout_ms = 50});
    struct end end;
    start_spinning(machine, engine, machine_memory(machine, 4), machine->space, 1, 0, &end);
    assert_int_equal(end_wait(&end), CUDA_ERROR_LAUNCH_TIMEOUT);
    assert_string_equal(end.message, "kernel spin has run for more than 50 ms");
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault),          cmocka_unit_test(test_place),
        cmocka_unit_test(test_endless_name),        cmocka_unit_test(test_exhausted_heap),
        cmocka_unit_test(test_a_fault_ends_others), cmocka_unit_test(test_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
