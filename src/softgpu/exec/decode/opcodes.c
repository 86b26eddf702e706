/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcode table, other half: everything that is not a plain computation of each lane. What is
 * not listed here is looked up among the arithmetic rows.
 */
#include "opcodes.h"

#include <string.h>

#include "decode.h"
#include "decode_alu.h"
#include "decode_bulk.h"
#include "decode_call.h"
#include "decode_control.h"
#include "decode_copy.h"
#include "decode_cvta.h"
#include "decode_matrix.h"
#include "decode_mbarrier.h"
#include "decode_memory.h"
#include "decode_mov.h"
#include "decode_surface.h"
#include "decode_tensor.h"
#include "decode_tex.h"
#include "decode_tex_query.h"
#include "decode_video.h"
#include "decode_wgmma.h"

static const struct opcode opcodes[] = {
    {"setp", decode_setp, false, "setp.CMP{.and .or .xor}{.ftz}.type p{\\|q}, a, b{, c}"},
    {"set", decode_set, false,
     "set.CMP{.and .or .xor}{.ftz}.{u32 s32 f32 f16 bf16 f16x2 bf16x2}.type d, a, b{, c}"},
    {"mov", decode_mov, false,
     "mov.type d, a; vectors of 2 and 4 packed and unpacked; addresses; special registers"},
    {"and", decode_logic, false, "and.{pred b16 b32 b64}"},
    {"or", decode_logic, false, "or.{pred b16 b32 b64}"},
    {"xor", decode_logic, false, "xor.{pred b16 b32 b64}"},
    {"not", decode_logic, false, "not.{pred b16 b32 b64}"},
    {"lop3", decode_lop3, false, "lop3{.and .or}.b32 d{\\|p}, a, b, c, table{, q}"},
    {"min", decode_limit, false, "min{.ftz}{.NaN}{.xorsign.abs}.type, min{.relu}.{s32 s16x2}"},
    {"max", decode_limit, false, "max{.ftz}{.NaN}{.xorsign.abs}.type, max{.relu}.{s32 s16x2}"},
    {"vadd2", decode_video, false,
     "vadd2.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vadd4", decode_video, false,
     "vadd4.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vsub2", decode_video, false,
     "vsub2.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vsub4", decode_video, false,
     "vsub4.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vavrg2", decode_video, false,
     "vavrg2.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vavrg4", decode_video, false,
     "vavrg4.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vabsdiff2", decode_video, false,
     "vabsdiff2.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vabsdiff4", decode_video, false,
     "vabsdiff4.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vmin2", decode_video, false,
     "vmin2.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vmin4", decode_video, false,
     "vmin4.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vmax2", decode_video, false,
     "vmax2.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vmax4", decode_video, false,
     "vmax4.{u32 s32}.{u32 s32}.{u32 s32}{.sat}{.add}, of whole registers"},
    {"vset2", decode_video, false, "vset2.{u32 s32}.{u32 s32}.CMP{.add}, of whole registers"},
    {"vset4", decode_video, false, "vset4.{u32 s32}.{u32 s32}.CMP{.add}, of whole registers"},
    {"prmt", decode_prmt, false, "prmt.b32{.f4e .b4e .rc8 .ecl .ecr .rc16}"},
    {"ld", decode_load, false, "ld{.space}{.volatile .relaxed .acquire ...}{.v2 .v4}.type"},
    {"ldu", decode_load, false, "ldu.global{.v2 .v4}.type"},
    {"st", decode_store, false,
     "st{.space}{.volatile .relaxed .release ...}{.v2 .v4}.type, st.async"},
    {"atom", decode_atomic, false, "atom{.order}{.scope}{.space}.OP{.v2 .v4}.type"},
    {"red", decode_atomic, false, "red{.order}{.scope}{.space}.OP{.v2 .v4}.type, red.async"},
    {"cvta", decode_cvta, false, "cvta{.to}.{global const shared local param}.u64"},
    {"isspacep", decode_isspacep, false,
     "isspacep.{global const shared shared::cluster local param}"},
    {"mapa", decode_mapa, false, "mapa{.shared::cluster}.{u32 u64}"},
    {"getctarank", decode_mapa, false, "getctarank{.shared::cluster}.{u32 u64}"},
    {"cp", decode_cp, false,
     "cp.async.{ca cg}.shared.global, cp.async.{commit_group wait_group wait_all}, "
     "cp.async.mbarrier.arrive{.noinc}; cp.async.bulk{.multicast::cluster} and "
     "cp.reduce.async.bulk between global and shared memory, "
     "cp.async.bulk.{commit_group wait_group prefetch}; by tensor maps "
     "cp.async.bulk.tensor.{1d 2d 3d 4d 5d}{.tile .im2col .im2col_no_offs}{.multicast::cluster}, "
     "cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor"},
    {"tensormap", decode_tensor_map, false,
     "tensormap.replace.tile.{global_address rank box_dim global_dim global_stride element_stride "
     "elemtype interleave_layout swizzle_mode fill_mode}{.global .shared::cta}.b1024.{b32 b64}, "
     "tensormap.cp_fenceproxy"},
    {"mbarrier", decode_mbarrier, false,
     "mbarrier.{init inval expect_tx complete_tx}, mbarrier.{arrive arrive_drop}{.expect_tx "
     ".noComplete}, mbarrier.{test_wait try_wait}{.parity}, mbarrier.pending_count"},
    {"tex", decode_tex, false,
     "tex{.base .level .grad}.{1d 2d 3d a1d a2d cube acube}.v4.{f32 s32 u32}.{f32 s32}, on "
     "objects"},
    {"tld4", decode_tex, false, "tld4.{r g b a}.2d.v4.{f32 s32 u32}.f32, on objects"},
    {"txq", decode_tex_query, false,
     "txq.{width height depth array_size num_mipmap_levels num_samples normalized_coords}.b32, "
     "txq.level.{width height depth}.b32, on objects"},
    {"suq", decode_tex_query, false, "suq.{width height depth array_size}.b32, on objects"},
    {"suld", decode_surface_load, false,
     "suld.b.{1d 2d 3d a1d a2d}{.v2 .v4}.{b8 b16 b32 b64}.{trap clamp zero}, on objects"},
    {"sust", decode_surface_store, false,
     "sust.b.{1d 2d 3d a1d a2d}{.v2 .v4}.{b8 b16 b32 b64}.{trap clamp zero}, on objects"},
    {"sured", decode_surface_reduction, false,
     "sured.b.{add min max and or}.{1d 2d 3d a1d a2d}.{u32 s32 u64 s64 b32 b64}.{trap clamp zero}, "
     "on objects"},
    {"alloca", decode_stack, false, "alloca.{u64 s64 b64}"},
    {"stacksave", decode_stack, false, "stacksave.{u64 s64 b64}"},
    {"stackrestore", decode_stack, false, "stackrestore.{u64 s64 b64}"},
    {"bra", decode_branch, false, "bra{.uni}"},
    {"brx", decode_branch_indexed, true, "brx.idx{.uni}"},
    {"call", decode_call, true,
     "call{.uni}, direct, through pointers; vprintf, __assertfail, malloc, free, "
     "cudaGraphSetConditional, the device runtime"},
    {"ret", decode_ret, true, "ret{.uni}"},
    {"exit", decode_exit, true, "exit"},
    {"trap", decode_trap, true, "trap"},
    {"brkpt", decode_trap, true, "brkpt"},
    {"bar", decode_barrier, true, "bar{.cta}.{sync arrive red.OP}, bar.warp.sync"},
    {"barrier", decode_barrier, true,
     "barrier{.cta}.{sync arrive red.OP}{.aligned}, barrier.cluster.{arrive wait}"},
    {"membar", decode_fence, false, "membar.{cta gl sys}"},
    {"fence", decode_fence, false, "fence{.sc .acq_rel}.scope, fence.proxy"},
    {"shfl", decode_shuffle, true, "shfl.sync.{up down bfly idx}.b32"},
    {"vote", decode_vote, true, "vote.sync.{all any uni}.pred, vote.sync.ballot.b32"},
    {"match", decode_match, true, "match.{any all}.sync.{b32 b64}"},
    {"redux", decode_redux, true, "redux.sync.OP.{u32 s32 b32}"},
    {"elect", decode_elect, true, "elect.sync"},
    {"activemask", decode_activemask, true, "activemask.b32"},
    {"mma", decode_mma, true,
     "mma.sync.aligned.SHAPE.row.col{.satfinite}{.rnd}.D.A.B.C{.xor .and}{.popc}: f16 bf16 m16n8k8 "
     "k16; tf32 m16n8k4 k8; e4m3 e5m2 m16n8k16 k32; f64 m8n8k4 m16n8k4 k8 k16; s8 u8 m8n8k16 "
     "m16n8k16 k32; s4 u4 m8n8k32 m16n8k32 k64; b1 m8n8k128 m16n8k128 k256. "
     "mma.sync.aligned.m8n8k4.{row col}.{row col} of f16. "
     "mma.sp{::ordered_metadata}.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C: f16 bf16 m16n8k16 "
     "k32; tf32 m16n8k8 k16; e4m3 e5m2 m16n8k64; s8 u8 m16n8k32 k64; s4 u4 m16n8k64 k128"},
    {"wmma", decode_wmma, true,
     "wmma.{load.a load.b load.c store.d mma}: f16 bf16 s8 u8 m16n16k16 m32n8k16 m8n32k16; tf32 "
     "m16n16k8; f64 m8n8k4; s4 u4 m8n8k32; b1 m8n8k128"},
    {"wgmma", decode_wgmma, true,
     "wgmma.mma_async.sync.aligned.m64nNkK{.satfinite}.D.A.B{.and.popc}, A in registers or in "
     "shared "
     "memory: f16 bf16 k16, tf32 k8, e4m3 e5m2 k32, s8 u8 k32, b1 k256; wgmma.{fence commit_group "
     "wait_group}.sync.aligned"},
    {"ldmatrix", decode_matrices, true, "ldmatrix.sync.aligned.m8n8.{x1 x2 x4}{.trans}.b16"},
    {"stmatrix", decode_matrices, true, "stmatrix.sync.aligned.m8n8.{x1 x2 x4}{.trans}.b16"},
    {"movmatrix", decode_movmatrix, true, "movmatrix.sync.aligned.m8n8.trans.b16"},
    {"nanosleep", decode_nanosleep, true, "nanosleep.u32"},
    {"createpolicy", decode_policy, false, "createpolicy.*.b64: a policy that says nothing"},
    {"prefetch", decode_nop, false, "prefetch: does nothing"},
    {"prefetchu", decode_nop, false, "prefetchu: does nothing"},
    {"discard", decode_nop, false, "discard: does nothing"},
    {"applypriority", decode_nop, false, "applypriority: does nothing"},
    {"pmevent", decode_nop, false, "pmevent: does nothing"},
    {"griddepcontrol", decode_nop, false, "griddepcontrol: does nothing"},
    {"setmaxnreg", decode_nop, false, "setmaxnreg: does nothing"},
};

const struct opcode *opcode_find(const char *name, size_t length)
{
    for (unsigned i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
        if (strlen(opcodes[i].name) == length && memcmp(opcodes[i].name, name, length) == 0)
            return &opcodes[i];
    }
    return NULL;
}

const struct opcode *opcode_at(unsigned index)
{
    return index < sizeof(opcodes) / sizeof(opcodes[0]) ? &opcodes[index] : NULL;
}
