// SPDX-License-Identifier: Apache-2.0
// mma.sp: products of a matrix A of which half is there, in every type and shape that sm_90 has,
// with every sparsity selector and every pattern of metadata. Elements go to the lanes' registers
// on the host, as PTX describes it. All values are small integers, so every sum is exact.
#include "check.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// The registers of a lane.
struct registers {
    unsigned a[4], b[4], c[4], d[4], metadata;
};

template <typename Operation> __global__ void by_mma(registers *lanes)
{
    Operation::run(lanes[threadIdx.x]);
}

#define D2 "{%0,%1}"
#define D4 "{%0,%1,%2,%3}"
#define A2 "{%4,%5}"
#define A4 "{%4,%5,%6,%7}"
#define B2 "{%8,%9}"
#define B4 "{%8,%9,%10,%11}"
#define C2 "{%12,%13}"
#define C4 "{%12,%13,%14,%15}"

#define OPERATION(name, text)                                                               \
    struct name {                                                                           \
        static __device__ void run(registers &r)                                            \
        {                                                                                   \
            asm volatile(text                                                               \
                         : "+r"(r.d[0]), "+r"(r.d[1]), "+r"(r.d[2]), "+r"(r.d[3])           \
                         : "r"(r.a[0]), "r"(r.a[1]), "r"(r.a[2]), "r"(r.a[3]), "r"(r.b[0]), \
                           "r"(r.b[1]), "r"(r.b[2]), "r"(r.b[3]), "r"(r.c[0]), "r"(r.c[1]), \
                           "r"(r.c[2]), "r"(r.c[3]), "r"(r.metadata));                      \
        }                                                                                   \
    }

// One struct for each selector: it is a part of the instruction.
#define FORM(name, variant, shape, types, lists) \
    OPERATION(name##_0,                          \
              "mma." variant ".sync.aligned." shape ".row.col." types " " lists ", %16, 0;")
#define FORM_2(name, variant, shape, types, lists) \
    FORM(name, variant, shape, types, lists);      \
    OPERATION(name##_1,                            \
              "mma." variant ".sync.aligned." shape ".row.col." types " " lists ", %16, 1;")
#define FORM_4(name, variant, shape, types, lists)                                            \
    FORM_2(name, variant, shape, types, lists);                                               \
    OPERATION(name##_2,                                                                       \
              "mma." variant ".sync.aligned." shape ".row.col." types " " lists ", %16, 2;"); \
    OPERATION(name##_3,                                                                       \
              "mma." variant ".sync.aligned." shape ".row.col." types " " lists ", %16, 3;")

#define ORDERED "sp::ordered_metadata"
#define ANY_ORDER "sp"
#define SHORT D4 ", " A2 ", " B2 ", " C4
#define LONG D4 ", " A4 ", " B4 ", " C4
#define SHORT_HALVES D2 ", " A2 ", " B2 ", " C2
#define LONG_HALVES D2 ", " A4 ", " B4 ", " C2

FORM_4(f16_k16, ORDERED, "m16n8k16", "f32.f16.f16.f32", SHORT);
FORM_4(f16_k16_any_order, ANY_ORDER, "m16n8k16", "f32.f16.f16.f32", SHORT);
FORM_2(f16_k32, ORDERED, "m16n8k32", "f32.f16.f16.f32", LONG);
FORM_4(f16_k16_in_halves, ORDERED, "m16n8k16", "f16.f16.f16.f16", SHORT_HALVES);
FORM_2(f16_k32_in_halves, ANY_ORDER, "m16n8k32", "f16.f16.f16.f16", LONG_HALVES);
FORM_4(bf16_k16, ORDERED, "m16n8k16", "f32.bf16.bf16.f32", SHORT);
FORM_2(bf16_k32, ORDERED, "m16n8k32", "f32.bf16.bf16.f32", LONG);
FORM_4(tf32_k8, ORDERED, "m16n8k8", "f32.tf32.tf32.f32", SHORT);
FORM_2(tf32_k16, ORDERED, "m16n8k16", "f32.tf32.tf32.f32", LONG);
FORM(e4m3_k64, ORDERED, "m16n8k64", "f32.e4m3.e4m3.f32", LONG);
FORM(e5m2_k64, ORDERED, "m16n8k64", "f32.e5m2.e4m3.f32", LONG);
FORM_2(s8_k32, ORDERED, "m16n8k32", "s32.s8.s8.s32", SHORT);
FORM_2(s8_k32_any_order, ANY_ORDER, "m16n8k32", "s32.s8.s8.s32", SHORT);
FORM(u8_k64, ORDERED, "m16n8k64", "satfinite.s32.u8.s8.s32", LONG);
FORM_2(s4_k64, ORDERED, "m16n8k64", "s32.s4.s4.s32", SHORT);
FORM(u4_k128, ORDERED, "m16n8k128", "s32.u4.s4.s32", LONG);
FORM(s4_k128_any_order, ANY_ORDER, "m16n8k128", "s32.s4.u4.s32", LONG);

// ---- Elements ----

struct element {
    int bits, low, high; // of those values that are tried
    unsigned (*encode)(int value);
};

template <typename T> static unsigned bits_of(T value)
{
    unsigned bits = 0;
    memcpy(&bits, &value, sizeof(value));
    return bits;
}

template <typename T> static unsigned encode_as(int value)
{
    return bits_of(T((float)value));
}

static unsigned encode_integer(int value)
{
    return (unsigned)value;
}

static const element f16 = {16, -4, 4, encode_as<__half>};
static const element bf16 = {16, -4, 4, encode_as<__nv_bfloat16>};
static const element tf32 = {32, -4, 4, encode_as<float>};
static const element f32 = {32, -4, 4, encode_as<float>};
static const element e4m3 = {8, -4, 4, encode_as<__nv_fp8_e4m3>};
static const element e5m2 = {8, -4, 4, encode_as<__nv_fp8_e5m2>};
static const element s8 = {8, -128, 127, encode_integer}, u8 = {8, 0, 255, encode_integer};
static const element s4 = {4, -8, 7, encode_integer}, u4 = {4, 0, 15, encode_integer};
static const element s32 = {32, -1000, 1000, encode_integer};

// The i-th element of a lane.
static void put(unsigned *lane_registers, const element &type, int i, int value)
{
    int each = 32 / type.bits;
    unsigned mask = type.bits == 32 ? ~0u : (1u << type.bits) - 1;
    lane_registers[i / each] |= (type.encode(value) & mask) << i % each * type.bits;
}

// ---- A problem ----

struct problem {
    int k;
    const element *a_type, *b_type, *sum_type;
    int selectors;
    bool ordered;
    std::vector<int> a, b, c; // row by row; of a, half is 0
    std::vector<int> stored;  // what is left of a
    std::vector<registers> lanes;
};

static int any_of(const element &type, uint32_t &state)
{
    return type.low + (int)(next_random(state) % (type.high - type.low + 1));
}

static void put_metadata(problem &p, int selector, int row, int chunk, unsigned pattern)
{
    bool wide = p.a_type->bits >= 16;
    int lane = wide ? chunk / 4 : chunk / 8 * 2 + row / 8;
    int bit = wide ? row / 8 * 16 + chunk % 4 * 4 : chunk % 8 * 4;
    unsigned &word = p.lanes[row % 8 * 4 + selector * (4 / p.selectors) + lane].metadata;
    word = (word & ~(0xfu << bit)) | pattern << bit;
}

// The column in its chunk of what is stored there as the i-th.
static int column_in(const element &type, unsigned pattern, int i)
{
    if (type.bits == 32)
        return pattern == 0xe;
    int run = type.bits == 4 ? 2 : 1;
    return (int)(pattern >> i / run * 2 & 3) * run + i % run;
}

static void fill_a(problem &p, int selector, int round, uint32_t &state)
{
    static const unsigned pairs[] = {0x4, 0x8, 0x9, 0xc, 0xd, 0xe, 0x1, 0x2, 0x6, 0x3, 0x7, 0xb};
    static const unsigned singles[] = {0x4, 0xe};
    int size = p.a_type->bits == 32 ? 2 : p.a_type->bits == 4 ? 8 : 4, half = size / 2;
    for (int row = 0; row < 16; row++) {
        for (int chunk = 0; chunk < p.k / size; chunk++) {
            // Round by round another one, and elsewhere in no order: neighbors must not be
            // mistaken.
            unsigned at = ((row * 16 + chunk) * 2654435761u >> 16) + round;
            unsigned pattern = size == 2 ? singles[at % 2] : pairs[at % (p.ordered ? 6 : 12)];
            put_metadata(p, selector, row, chunk, pattern);
            for (int i = 0; i < half; i++) {
                int value = any_of(*p.a_type, state);
                p.stored[row * p.k / 2 + chunk * half + i] = value;
                p.a[row * p.k + chunk * size + column_in(*p.a_type, pattern, i)] = value;
            }
        }
    }
}

static void spread(problem &p)
{
    int each_a = 32 / p.a_type->bits, each_b = 32 / p.b_type->bits;
    for (int lane = 0; lane < 32; lane++) {
        registers &r = p.lanes[lane];
        for (int i = 0; i < 16 * p.k / 2 / 32; i++) {
            int row = lane / 4 + i / each_a % 2 * 8;
            int column = lane % 4 * each_a + i % each_a + i / each_a / 2 * 4 * each_a;
            put(r.a, *p.a_type, i, p.stored[row * p.k / 2 + column]);
        }
        for (int i = 0; i < 8 * p.k / 32; i++) {
            int row = lane % 4 * each_b + i % each_b + i / each_b * 4 * each_b;
            put(r.b, *p.b_type, i, p.b[row * 8 + lane / 4]);
        }
        for (int i = 0; i < 4; i++)
            put(r.c, *p.sum_type, i, p.c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2]);
    }
}

static void fill(problem &p, int selector, int round)
{
    uint32_t state = p.k * 31 + selector * 7 + round;
    p.a.assign(16 * p.k, 0);
    p.stored.assign(16 * p.k / 2, 0);
    p.b.resize(8 * p.k);
    p.c.resize(16 * 8);
    p.lanes.assign(32, registers{});
    for (registers &r : p.lanes)
        r.metadata = next_random(state) * 0x10001; // of lanes that the selector does not name
    for (int &value : p.b)
        value = any_of(*p.b_type, state);
    for (int &value : p.c)
        value = any_of(*p.sum_type, state);
    fill_a(p, selector, round, state);
    spread(p);
}

static bool is_solved(const problem &p, const std::vector<registers> &lanes)
{
    bool solved = true;
    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 8; column++) {
            int sum = p.c[row * 8 + column];
            for (int l = 0; l < p.k; l++)
                sum += p.a[row * p.k + l] * p.b[l * 8 + column];
            int i = row / 8 * 2 + column % 2, each = 32 / p.sum_type->bits;
            unsigned word = lanes[row % 8 * 4 + column / 2].d[i / each];
            unsigned mask = p.sum_type->bits == 32 ? ~0u : 0xffff;
            unsigned expected = p.sum_type->encode(sum) & mask;
            // Zeros of either sign are as good.
            unsigned found = word >> i % each * p.sum_type->bits & mask;
            solved &= found == expected || (sum == 0 && (found << 1 & mask) == 0);
        }
    }
    return solved;
}

template <typename Operation> static void check(problem &p, int selector)
{
    int rounds = p.a_type == &tf32 ? 2 : p.ordered ? 6 : 12;
    for (int round = 0; round < rounds; round++) {
        fill(p, selector, round);
        registers *lanes = make(p.lanes);
        by_mma<Operation><<<1, 32>>>(lanes);
        MUST(cudaGetLastError());
        MUST(cudaDeviceSynchronize());
        IS_TRUE(is_solved(p, take(lanes, 32)));
        MUST(cudaFree(lanes));
    }
}

template <typename S0>
static void check_one(int k, const element &a, const element &b, const element &sum,
                      bool ordered = true)
{
    problem p = {k, &a, &b, &sum, 1, ordered};
    check<S0>(p, 0);
}

template <typename S0, typename S1>
static void check_two(int k, const element &a, const element &b, const element &sum,
                      bool ordered = true)
{
    problem p = {k, &a, &b, &sum, 2, ordered};
    check<S0>(p, 0);
    check<S1>(p, 1);
}

template <typename S0, typename S1, typename S2, typename S3>
static void check_four(int k, const element &a, const element &b, const element &sum,
                       bool ordered = true)
{
    problem p = {k, &a, &b, &sum, 4, ordered};
    check<S0>(p, 0);
    check<S1>(p, 1);
    check<S2>(p, 2);
    check<S3>(p, 3);
}

#define ALL_2(name) name##_0, name##_1
#define ALL_4(name) ALL_2(name), name##_2, name##_3

static void halves()
{
    check_four<ALL_4(f16_k16)>(16, f16, f16, f32);
    check_four<ALL_4(f16_k16_any_order)>(16, f16, f16, f32, false);
    check_two<ALL_2(f16_k32)>(32, f16, f16, f32);
    check_four<ALL_4(f16_k16_in_halves)>(16, f16, f16, f16);
    check_two<ALL_2(f16_k32_in_halves)>(32, f16, f16, f16, false);
}

static void bfloats()
{
    check_four<ALL_4(bf16_k16)>(16, bf16, bf16, f32);
    check_two<ALL_2(bf16_k32)>(32, bf16, bf16, f32);
}

static void tf32s()
{
    check_four<ALL_4(tf32_k8)>(8, tf32, tf32, f32);
    check_two<ALL_2(tf32_k16)>(16, tf32, tf32, f32);
}

static void fp8()
{
    check_one<e4m3_k64_0>(64, e4m3, e4m3, f32);
    check_one<e5m2_k64_0>(64, e5m2, e4m3, f32);
}

static void bytes()
{
    check_two<ALL_2(s8_k32)>(32, s8, s8, s32);
    check_two<ALL_2(s8_k32_any_order)>(32, s8, s8, s32, false);
    check_one<u8_k64_0>(64, u8, s8, s32);
}

static void nibbles()
{
    check_two<ALL_2(s4_k64)>(64, s4, s4, s32);
    check_one<u4_k128_0>(128, u4, s4, s32);
    check_one<s4_k128_any_order_0>(128, s4, u4, s32, false);
}

int main()
{
    RUN(halves);
    RUN(bfloats);
    RUN(tf32s);
    RUN(fp8);
    RUN(bytes);
    RUN(nibbles);
    return check_close();
}
