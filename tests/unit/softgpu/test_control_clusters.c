/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters: addresses in other blocks' shared memory, the barrier, bulk copies; and what goes
 * wrong.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define OUT_WORDS 64

/* %rd1 is the output, 64 words; %r1 the block's rank; box is 256 bytes of shared memory. */
#define HEAD(cluster)                                                                              \
    ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)"            \
    " .reqnctapercluster " cluster "\n{\n.reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<8>;\n" \
    ".shared .align 128 .b8 box[256];\n.shared .align 8 .b8 barrier[8];\n"                         \
    "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %cluster_ctarank;\n"
#define SYNC "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
/* Word `index` of this block's four words in the output. */
#define PUT(index, from)                              \
    "{\n.reg .b64 %to; .reg .b32 %at;\n"              \
    "mad.lo.u32 %at, %ctaid.x, 16, " #index " * 4;\n" \
    "cvt.u64.u32 %to, %at;\nadd.u64 %to, %to, %rd1;\nst.global.u32 [%to], " from ";\n}\n"
#define PUT_PREDICATE(index, p) "selp.u32 %r15, 1, 0, " p ";\n" PUT(index, "%r15")
#define END "ret;\n}\n"

static CUresult run(const char *text, uint32_t blocks, uint32_t threads, uint32_t *ret_out,
                    char *ret_message)
{
    struct machine *machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, OUT_WORDS * sizeof(*out));
    void *params[] = {&out};
    CUresult result = machine_launch(machine, "k", blocks, threads, 0, params);
    memcpy(ret_out, out, OUT_WORDS * sizeof(*out));
    if (ret_message)
        memcpy(ret_message, machine->message, sizeof(machine->message));
    machine_destroy(machine);
    return result;
}

static void expect(const char *text, uint32_t blocks, uint32_t threads, const uint32_t *words,
                   unsigned count)
{
    uint32_t out[OUT_WORDS];
    char message[512];
    if (run(text, blocks, threads, out, message) != CUDA_SUCCESS)
        fail_msg("%s", message);
    for (unsigned i = 0; i < count; i++) {
        if (out[i] != words[i])
            fail_msg("word %u: %u instead of %u", i, out[i], words[i]);
    }
}

#define EXPECT(text, blocks, threads, ...)                   \
    expect(text, blocks, threads, (uint32_t[]){__VA_ARGS__}, \
           sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Each block reads what the other has written, by an address of each kind. */
static void test_addresses(void **state)
{
    EXPECT(HEAD("2") "add.u32 %r2, %r1, 100;\nst.shared.u32 [box+8], %r2;\n" SYNC
                     "xor.b32 %r3, %r1, 1;\n"
                     "mapa.shared::cluster.u32 %r4, box, %r3;\n"
                     "ld.shared::cluster.u32 %r5, [%r4+8];\n" PUT(
                         0, "%r5") "mov.u64 %rd2, box;\ncvta.shared.u64 %rd3, %rd2;\n"
                                   "mapa.u64 %rd4, %rd3, %r3;\nld.u32 %r6, [%rd4+8];\n" PUT(
                                       1, "%r6") "getctarank.u64 %r7, %rd4;\n"
                                                 "getctarank.shared::cluster.u32 %r8, %r4;\n"
                                                 "mad.lo.u32 %r7, %r7, 16, %r8;\n" PUT(
                                                     2, "%r7") "cvta.to.shared::cluster.u64 %rd5, "
                                                               "%rd4;\ncvt.u32.u64 %r9, %rd5;\n"
                                                               "sub.u32 %r9, %r9, %r4;\n" PUT(
                                                                   3, "%r9") SYNC END,
           2, 1, 101, 101, 0x11, 0, 100, 100, 0, 0);
}

static void test_spaces(void **state)
{
    EXPECT(HEAD("2") "xor.b32 %r3, %r1, 1;\nmov.u64 %rd2, box;\ncvta.shared.u64 %rd3, %rd2;\n"
                     "mapa.u64 %rd4, %rd3, %r3;\n"
                     "isspacep.shared %p1, %rd4;\nisspacep.shared::cluster %p2, %rd4;\n"
                     "isspacep.shared::cta %p3, %rd3;\nisspacep.global %p4, %rd4;\n" PUT_PREDICATE(
                         0, "%p1") PUT_PREDICATE(1, "%p2") PUT_PREDICATE(2, "%p3")
                         PUT_PREDICATE(3, "%p4") SYNC END,
           2, 1, 0, 1, 1, 0, 0, 1, 1, 0);
}

/* Both blocks add to a counter, arrive at a barrier and send bytes, all in the first block. */
static void test_remote_writes(void **state)
{
    EXPECT(
        HEAD("2") "mov.u32 %r2, 0;\nst.shared.u32 [box], %r2;\nst.shared.u32 [box+4], %r2;\n"
                  "mbarrier.init.shared.b64 [barrier], 2;\n"
                  "mbarrier.expect_tx.relaxed.cta.shared.b64 [barrier], 16;\n" SYNC
                  "mapa.shared::cluster.u32 %r3, box, %r2;\n"
                  "mapa.shared::cluster.u32 %r4, barrier, %r2;\n"
                  "atom.shared::cluster.add.u32 %r5, [%r3], 5;\n"
                  "shl.b32 %r6, %r1, 2;\nadd.u32 %r6, %r6, %r3;\nadd.u32 %r7, %r1, 70;\n"
                  "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6+16], %r7,"
                  " [%r4];\n"
                  "red.async.relaxed.cluster.add.shared::cluster.mbarrier::complete_tx::bytes.u32"
                  " [%r3+4], %r7, [%r4];\n"
                  "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];\n"
                  "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra end;\nwaits:\n"
                  "mbarrier.try_wait.parity.shared.b64 %p2, [barrier], 0;\n@!%p2 bra waits;\n"
                  "ld.shared.u32 %r8, [box];\nld.shared.u32 %r9, [box+4];\n"
                  "ld.shared.v2.u32 {%r10, %r11}, [box+16];\n" PUT(0, "%r8") PUT(1, "%r9")
                      PUT(2, "%r10") PUT(3, "%r11") "end:\n" SYNC END,
        2, 1, 10, 141, 70, 71);
}

/* Threads that have exited are not waited for, and the barrier separates the phases. */
static void test_barrier(void **state)
{
    EXPECT(HEAD("4") "setp.eq.u32 %p1, %r1, 3;\n@%p1 exit;\nmov.u32 %r2, %tid.x;\n"
                     "setp.ge.u32 %p2, %r2, 40;\n@%p2 exit;\nmov.u32 %r3, 0;\n"
                     "mapa.shared::cluster.u32 %r4, box, 0;\n"
                     "mov.u32 %r5, 0;\nst.shared.u32 [box], %r5;\n" SYNC "again:\n"
                     "red.shared::cluster.add.u32 [%r4], 1;\n" SYNC
                     "ld.shared::cluster.u32 %r5, [%r4];\n" SYNC "add.u32 %r3, %r3, 1;\n"
                     "setp.lt.u32 %p3, %r3, 5;\n@%p3 bra again;\n" PUT(0, "%r5") END,
           4, 64, 600, 0, 0, 0, 600);
}

/* More threads than the capacity of an SM. */
static void test_large(void **state)
{
    EXPECT(HEAD("16") "mov.u32 %r2, 0;\nst.shared.u32 [box], %r2;\n" SYNC
                      "mapa.shared::cluster.u32 %r4, box, %r2;\n"
                      "red.shared::cluster.add.u32 [%r4], 1;\n" SYNC
                      "ld.shared::cluster.u32 %r5, [%r4];\n" PUT(1, "%r5") SYNC END,
           16, 1024, 0, 16384, 0, 0, 0, 16384);
}

/* ---- What goes wrong ---- */

static void expect_fault(const char *text, CUresult expected, const char *words)
{
    uint32_t out[OUT_WORDS];
    char message[512];
    assert_int_equal(run(text, 2, 1, out, message), expected);
    if (!strstr(message, words) || !strstr(message, "kernel k") || !strstr(message, "PTX line"))
        fail_msg("%s", message);
}

static void test_faults(void **state)
{
    expect_fault(HEAD("2") "mapa.shared::cluster.u32 %r2, box, 2;\n" END,
                 CUDA_ERROR_ILLEGAL_ADDRESS, "block 2 of a cluster that has fewer");
    expect_fault(HEAD("2") "mov.u32 %r2, 0x5000000;\nld.shared::cluster.u32 %r3, [%r2];\n" END,
                 CUDA_ERROR_ILLEGAL_ADDRESS, "beyond the cluster's shared memory");
    expect_fault(HEAD("2") "mapa.shared::cluster.u32 %r2, box, 1;\n"
                           "ld.shared::cluster.u32 %r3, [%r2+4096];\n" END,
                 CUDA_ERROR_ILLEGAL_ADDRESS, "beyond the cluster's shared memory");
    expect_fault(HEAD("2") "setp.eq.u32 %p1, %r1, 0;\n@%p1 barrier.cluster.arrive;\n"
                           "@%p1 barrier.cluster.wait;\n@!%p1 bar.sync 1, 64;\n" END,
                 CUDA_ERROR_LAUNCH_FAILED, "other threads never reach");
    expect_fault(HEAD("2") "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [box], 20;\n" END,
                 CUDA_ERROR_ILLEGAL_INSTRUCTION, "a bulk copy of 20 bytes");
    expect_fault(HEAD("2") "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [box], 4096;\n" END,
                 CUDA_ERROR_ILLEGAL_ADDRESS, "shared memory");
    expect_fault(HEAD("2") "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                           ".multicast::cluster [box], [%rd1], 16, [barrier], 5;\n" END,
                 CUDA_ERROR_ILLEGAL_ADDRESS, "block 2 of a cluster that has fewer");
}

/* The grid must be made of whole clusters. */
static void test_shapes(void **state)
{
    uint32_t out[OUT_WORDS];
    assert_int_equal(run(HEAD("2") END, 3, 1, out, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(run(HEAD("32") END, 32, 1, out, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(run(HEAD("2, 2") END, 4, 1, out, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* ---- Bulk reductions ---- */

/* Adds the block's words to the output, or whatever the operation is. */
static void reduce(const char *op, uint32_t out, uint32_t value, uint32_t expected)
{
    char text[2048];
    snprintf(text, sizeof(text), "%s mov.u32 %%r2, %u; mov.u32 %%r3, %u;\n%s%s%s", HEAD("1"), out,
             value,
             "st.global.v4.u32 [%rd1], {%r2, %r2, %r2, %r2};\n"
             "st.shared.v4.u32 [box], {%r3, %r3, %r3, %r3};\n"
             "cp.reduce.async.bulk.global.shared::cta.bulk_group.",
             op,
             " [%rd1], [box], 16;\n"
             "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n" END);
    EXPECT(text, 1, 1, expected, expected, expected, expected);
}

static void test_reductions(void **state)
{
    reduce("add.u32", 0xffffffff, 2, 1);
    reduce("min.s32", 5, 0xfffffffe, 0xfffffffe);
    reduce("min.u32", 5, 0xfffffffe, 5);
    reduce("max.s32", 5, 0xfffffffe, 5);
    reduce("inc.u32", 3, 3, 0);
    reduce("dec.u32", 0, 3, 3);
    reduce("and.b32", 0xff0, 0x0ff, 0x0f0);
    reduce("or.b32", 0xf00, 0x0f0, 0xff0);
    reduce("xor.b32", 0xff0, 0x0ff, 0xf0f);
    reduce("add.noftz.f16", 0x3c003c00, 0x40003c00, 0x42004000);
    reduce("add.f32", 0x3f800000, 0x40000000, 0x40400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),     cmocka_unit_test(test_spaces),
        cmocka_unit_test(test_remote_writes), cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_large),         cmocka_unit_test(test_faults),
        cmocka_unit_test(test_shapes),        cmocka_unit_test(test_reductions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
