/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of PTX that the software GPU lacks. The coverage document lists them, and the test
 * loads each example and hears of it by name.
 */
#include "refused.h"

#include <string.h>

static const struct refused list[] = {
    {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16",
     "{%r0, %r1}, %rd1, %rd2, %r3, 0, 1, 1, 1, 0, 0", "wgmma.mma_async.sp: a sparse A"},
    {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", "[box], 64",
     "tcgen05: the tensor unit of sm_100a"},
    {"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes",
     "[box], [%rd1, {%r1, %r2, %r3, %r4, %r5}], [%r2]",
     "cp.async.bulk.tensor of sm_100: gather4, scatter4, im2col::w, cta_group"},
    {"tensormap.replace.tile.swizzle_atomicity.global.b1024.b32", "[%rd1], 0",
     "tensormap.replace of swizzle_atomicity, of sm_100a"},
    {"multimem.ld_reduce.relaxed.sys.global.add.f32", "%f0, [%rd1]",
     "multimem.ld_reduce: memory of several GPUs at one address"},
    {"multimem.st.relaxed.sys.global.f32", "[%rd1], %f0", "multimem.st"},
    {"multimem.red.relaxed.sys.global.add.f32", "[%rd1], %f0", "multimem.red"},
    {"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128",
     "[box], [box]", "clusterlaunchcontrol, of sm_100"},
    {"st.bulk.weak.shared::cta", "[box], %rd1, 0", "st.bulk, of sm_100"},
    {"redux.sync.min.f32", "%f0, %f1, -1", "redux.sync of f32, of sm_100a"},
    {"ld.global.v8.b32", "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%rd1]",
     "ld and st of vectors of 256 bits, of sm_100"},
    {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "{%r0, %r1}, [box]",
     "ldmatrix and stmatrix of 8 bits, of sm_100a"},
    {"fma.rn.f32.f16", "%f0, %h0, %h1, %f1", "add, sub, fma of f32 and halves, of sm_100"},
    {"min.f32", "%f0, %f1, %f2, %f3", "min and max of three operands, of sm_100"},
    {"fma.rn.oob.f16", "%h0, %h1, %h2, %h3", "fma.oob"},
    {"vshl.u32.u32.u32.wrap", "%r0, %r1, %r2",
     "vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vmad, vset of single values"},
    {"istypep.texref", "%p0, %rd1", "istypep"},
    {"cvt.rs.f16x2.f32", "%r0, %f0, %f1, %r1", "cvt.rs, and cvt of 4 and 6 bits, of sm_100a"},
};

static const char *const opcodes_of_ptx[] = {
    "abs",          "activemask",    "add",       "addc",       "alloca",
    "and",          "applypriority", "atom",      "bar",        "barrier",
    "bfe",          "bfi",           "bfind",     "bmsk",       "bra",
    "brev",         "brkpt",         "brx",       "call",       "clusterlaunchcontrol",
    "clz",          "cnot",          "copysign",  "cos",        "cp",
    "createpolicy", "cvt",           "cvta",      "discard",    "div",
    "dp2a",         "dp4a",          "elect",     "ex2",        "exit",
    "fence",        "fma",           "fns",       "getctarank", "griddepcontrol",
    "isspacep",     "istypep",       "ld",        "ldmatrix",   "ldu",
    "lg2",          "lop3",          "mad",       "mad24",      "madc",
    "mapa",         "match",         "max",       "mbarrier",   "membar",
    "min",          "mma",           "mov",       "movmatrix",  "mul",
    "mul24",        "multimem",      "nanosleep", "neg",        "not",
    "or",           "pmevent",       "popc",      "prefetch",   "prefetchu",
    "prmt",         "rcp",           "red",       "redux",      "rem",
    "ret",          "rsqrt",         "sad",       "selp",       "set",
    "setmaxnreg",   "setp",          "shf",       "shfl",       "shl",
    "shr",          "sin",           "slct",      "sqrt",       "st",
    "stackrestore", "stacksave",     "stmatrix",  "sub",        "subc",
    "suld",         "suq",           "sured",     "sust",       "szext",
    "tanh",         "tcgen05",       "tensormap", "testp",      "tex",
    "tld4",         "trap",          "txq",       "vabsdiff",   "vabsdiff2",
    "vabsdiff4",    "vadd",          "vadd2",     "vadd4",      "vavrg2",
    "vavrg4",       "vmad",          "vmax",      "vmax2",      "vmax4",
    "vmin",         "vmin2",         "vmin4",     "vote",       "vset",
    "vset2",        "vset4",         "vshl",      "vshr",       "vsub",
    "vsub2",        "vsub4",         "wgmma",     "wmma",       "xor",
};

bool is_opcode_of_ptx(const char *name, size_t length)
{
    for (unsigned i = 0; i < sizeof(opcodes_of_ptx) / sizeof(opcodes_of_ptx[0]); i++) {
        if (strlen(opcodes_of_ptx[i]) == length && memcmp(opcodes_of_ptx[i], name, length) == 0)
            return true;
    }
    return false;
}

const struct refused *refused_at(unsigned index)
{
    return index < sizeof(list) / sizeof(list[0]) ? &list[index] : NULL;
}
