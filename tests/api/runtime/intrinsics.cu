// SPDX-License-Identifier: Apache-2.0
// The intrinsics of CUDA C++ against the same in plain C++ on the host: integers, packed bytes and
// halfwords, rounding, and what the lanes of a warp do together.
#include "check.cuh"

#include <algorithm>
#include <cmath>

#define COUNT 256

struct operands {
    unsigned a, b, c;
};

static std::vector<operands> numbers()
{
    static const unsigned edges[] = {0,          1,          2,          31,        32,     33,
                                     0x7f,       0x80,       0xff,       0x7fff,    0x8000, 0xffff,
                                     0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    std::vector<operands> all(COUNT);
    uint32_t state = 11;

    for (int i = 0; i < COUNT; i++) {
        operands &one = all[i];
        one.a = next_random(state) << 9 ^ next_random(state);
        one.b = next_random(state) << 9 ^ next_random(state);
        one.c = next_random(state);
        if (i % 3 == 0)
            one.a = edges[i / 3 % 16];
        if (i % 4 == 0)
            one.b = edges[i / 4 % 16];
    }
    return all;
}

// `device` of every number on the GPU must be `host` of it here.
template <typename F> __global__ void map_kernel(const operands *in, unsigned long long *out, F f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = f(in[i].a, in[i].b, in[i].c);
}

template <typename D, typename H> static bool agree(D device, H host)
{
    std::vector<operands> all = numbers();
    operands *in = make(all);
    unsigned long long *out = make(std::vector<unsigned long long>(COUNT));
    bool same = true;

    map_kernel<<<2, COUNT / 2>>>(in, out, device);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    std::vector<unsigned long long> got = take(out, COUNT);
    for (int i = 0; i < COUNT; i++) {
        unsigned long long expected = host(all[i].a, all[i].b, all[i].c);
        if (got[i] == expected)
            continue;
        printf("(%x, %x, %x): %llx instead of %llx\n", all[i].a, all[i].b, all[i].c, got[i],
               expected);
        same = false;
        break;
    }
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    return same;
}

// Two expressions of a, b and c: one for the device, one for the host.
#define AGREE(on_device, on_host)                                                        \
    IS_TRUE(agree([] __device__(unsigned a, unsigned b, unsigned c)                      \
                      -> unsigned long long { return (unsigned long long)(on_device); }, \
                  [](unsigned a, unsigned b, unsigned c) -> unsigned long long {         \
                      return (unsigned long long)(on_host);                              \
                  }))

typedef unsigned long long u64;
typedef long long s64;

static u64 wide(unsigned a, unsigned b)
{
    return (u64)a << 32 | b;
}

static unsigned reversed(unsigned a)
{
    unsigned result = 0;
    for (int i = 0; i < 32; i++)
        result |= (a >> i & 1) << (31 - i);
    return result;
}

static unsigned bytes_of(unsigned a, unsigned b, unsigned selector)
{
    u64 both = (u64)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}

static void bits()
{
    AGREE(__popc(a) + __popcll((u64)a << 32 | b),
          __builtin_popcount(a) + __builtin_popcountll(wide(a, b)));
    AGREE(__clz(a) * 100 + __clzll((u64)a << 32 | b),
          (a ? __builtin_clz(a) : 32) * 100 + (wide(a, b) ? __builtin_clzll(wide(a, b)) : 64));
    AGREE(__ffs(a) * 100 + __ffsll((u64)a << 32 | b),
          __builtin_ffs((int)a) * 100 + __builtin_ffsll((s64)wide(a, b)));
    AGREE(__brev(a), reversed(a));
    AGREE(__brevll((u64)a << 32 | b), wide(reversed(b), reversed(a)));
    AGREE(__byte_perm(a, b, c), bytes_of(a, b, c));
    AGREE(__funnelshift_l(a, b, c), wide(b, a) << (c & 31) >> 32);
    AGREE(__funnelshift_r(a, b, c), (unsigned)(wide(b, a) >> (c & 31)));
    AGREE(__funnelshift_lc(a, b, c), (c >= 32 ? a : (unsigned)(wide(b, a) << (c & 31) >> 32)));
    AGREE(__funnelshift_rc(a, b, c), (c >= 32 ? b : (unsigned)(wide(b, a) >> (c & 31))));
    AGREE((a & b) | (~a & c) | (a ^ b ^ c), (a & b) | (~a & c) | (a ^ b ^ c));
}

static void integers()
{
    AGREE((unsigned)__mulhi((int)a, (int)b), (unsigned)((s64)(int)a * (int)b >> 32));
    AGREE(__umulhi(a, b), (u64)a * b >> 32);
    AGREE(__mul64hi((s64)((u64)a << 32 | c), (s64)((u64)b << 32 | a)),
          (u64)((__int128)(s64)wide(a, c) * (s64)wide(b, a) >> 64));
    AGREE(__umul64hi((u64)a << 32 | c, (u64)b << 32 | a),
          (u64)((unsigned __int128)wide(a, c) * wide(b, a) >> 64));
    AGREE((unsigned)__mul24((int)a, (int)b),
          (unsigned)((int)(a << 8) >> 8) * (unsigned)((int)(b << 8) >> 8));
    AGREE(__umul24(a, b), (unsigned)((a & 0xffffff) * (b & 0xffffff)));
    AGREE((unsigned)__hadd((int)a, (int)b), (unsigned)(((s64)(int)a + (int)b) >> 1));
    AGREE(__uhadd(a, b), ((u64)a + b) >> 1);
    AGREE((unsigned)__rhadd((int)a, (int)b), (unsigned)(((s64)(int)a + (int)b + 1) >> 1));
    AGREE(__urhadd(a, b), ((u64)a + b + 1) >> 1);
    AGREE(__sad((int)a, (int)b, c), (unsigned)((int)a > (int)b ? a - b : b - a) + c);
    AGREE(__usad(a, b, c), (unsigned)((a > b ? a - b : b - a) + c));
    AGREE((unsigned)abs((int)(a | 1)), (unsigned)((int)(a | 1) < 0 ? 0u - (a | 1) : (a | 1)));
    AGREE(a / (b | 1) + a % (b | 1), a / (b | 1) + a % (b | 1));
    AGREE(((u64)a << 32 | c) / (b | 1) ^ ((u64)a << 32 | c) % (((u64)b << 20) | 1),
          wide(a, c) / (b | 1) ^ wide(a, c) % (((u64)b << 20) | 1));
    AGREE((u64)((s64)((u64)a << 32 | c) / (s64)(int)(b | 1)),
          (u64)((s64)wide(a, c) / (s64)(int)(b | 1)));
}

static int byte_of(unsigned a, int i)
{
    return (int)(int8_t)(a >> 8 * i);
}

static unsigned clamp(int value, int low, int high)
{
    return (unsigned)(value < low ? low : value > high ? high : value);
}

// Applies to each byte or halfword and packs the results.
template <typename F> static unsigned each_byte(F f)
{
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= ((unsigned)f(8 * i) & 0xff) << 8 * i;
    return result;
}

template <typename F> static unsigned each_half(F f)
{
    unsigned result = 0;
    for (int i = 0; i < 2; i++)
        result |= ((unsigned)f(16 * i) & 0xffff) << 16 * i;
    return result;
}

#define BYTES(expression) each_byte([=](int at) { return (expression); })
#define HALVES(expression) each_half([=](int at) { return (expression); })
#define UB(x) ((int)((x) >> at & 0xff))
#define SB(x) ((int)(int8_t)((x) >> at))
#define UH(x) ((int)((x) >> at & 0xffff))
#define SH(x) ((int)(int16_t)((x) >> at))

static void packed_integers()
{
    AGREE(__vadd4(a, b), BYTES(UB(a) + UB(b)));
    AGREE(__vsub4(a, b), BYTES(UB(a) - UB(b)));
    AGREE(__vaddss4(a, b), BYTES(clamp(SB(a) + SB(b), -128, 127)));
    AGREE(__vaddus4(a, b), BYTES(clamp(UB(a) + UB(b), 0, 255)));
    AGREE(__vsubss4(a, b), BYTES(clamp(SB(a) - SB(b), -128, 127)));
    AGREE(__vsubus4(a, b), BYTES(clamp(UB(a) - UB(b), 0, 255)));
    AGREE(__vabs4(a), BYTES(SB(a) < 0 ? -SB(a) : SB(a)));
    AGREE(__vabsdiffu4(a, b), BYTES(UB(a) > UB(b) ? UB(a) - UB(b) : UB(b) - UB(a)));
    AGREE(__vavgs4(a, b), BYTES((SB(a) + SB(b) + (SB(a) + SB(b) >= 0)) >> 1));
    AGREE(__vavgu4(a, b), BYTES((UB(a) + UB(b) + 1) >> 1));
    AGREE(__vcmpgts4(a, b), BYTES(SB(a) > SB(b) ? 0xff : 0));
    AGREE(__vcmpleu4(a, b), BYTES(UB(a) <= UB(b) ? 0xff : 0));
    AGREE(__vmaxs4(a, b), BYTES(SB(a) > SB(b) ? SB(a) : SB(b)));
    AGREE(__vminu4(a, b), BYTES(UB(a) < UB(b) ? UB(a) : UB(b)));
    AGREE(__vsetne4(a, b), BYTES(UB(a) != UB(b)));
    AGREE(__vsads4(a, b),
          (unsigned)(abs(byte_of(a, 0) - byte_of(b, 0)) + abs(byte_of(a, 1) - byte_of(b, 1)) +
                     abs(byte_of(a, 2) - byte_of(b, 2)) + abs(byte_of(a, 3) - byte_of(b, 3))));
    AGREE(__vadd2(a, b), HALVES(UH(a) + UH(b)));
    AGREE(__vaddss2(a, b), HALVES(clamp(SH(a) + SH(b), -32768, 32767)));
    AGREE(__vsubus2(a, b), HALVES(clamp(UH(a) - UH(b), 0, 65535)));
    AGREE(__vmaxu2(a, b), HALVES(UH(a) > UH(b) ? UH(a) : UH(b)));
    AGREE(__vmins2(a, b), HALVES(SH(a) < SH(b) ? SH(a) : SH(b)));
    AGREE(__vcmpeq2(a, b), HALVES(UH(a) == UH(b) ? 0xffff : 0));
    AGREE(__vnegss2(a), HALVES(clamp(-SH(a), -32768, 32767)));
    AGREE((unsigned)__dp4a((int)a, (int)b, (int)c),
          c + (unsigned)(byte_of(a, 0) * byte_of(b, 0) + byte_of(a, 1) * byte_of(b, 1) +
                         byte_of(a, 2) * byte_of(b, 2) + byte_of(a, 3) * byte_of(b, 3)));
    AGREE(__dp2a_lo(a, b, c),
          (unsigned)(c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff)));
    AGREE(__viaddmax_s32((int)a, (int)b, (int)c),
          (unsigned)((int)(a + b) > (int)c ? (int)(a + b) : (int)c));
    AGREE((unsigned)__vimax3_s32((int)a, (int)b, (int)c),
          (unsigned)((int)a > (int)b ? ((int)a > (int)c ? a : c) : ((int)b > (int)c ? b : c)));
    AGREE((unsigned)__vimax_s32_relu((int)a, (int)b), (unsigned)std::max({(int)a, (int)b, 0}));
    AGREE((unsigned)__viaddmin_s32_relu((int)a, (int)b, (int)c),
          (unsigned)std::max(std::min((int)(a + b), (int)c), 0));
    AGREE(__vimax_s16x2_relu(a, b), HALVES(std::max({SH(a), SH(b), 0})));
    AGREE(__vimin3_s16x2_relu(a, b, c), HALVES(std::max(std::min({SH(a), SH(b), SH(c)}), 0)));
    AGREE(__viaddmax_s16x2_relu(a, b, c),
          HALVES(std::max({(int)(short)(SH(a) + SH(b)), SH(c), 0})));
}

// ---- Floating point ----

static float as_float(unsigned a)
{
    float value;
    memcpy(&value, &a, sizeof(value));
    return value;
}

static unsigned as_bits(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof(bits));
    return std::isnan(value) ? 0x7fffffff : bits;
}

// Rounds the exact value, which fits into a double, towards zero.
static float toward_zero(double exact)
{
    float nearest = (float)exact;
    if (std::isinf(nearest) && !std::isinf(exact))
        return std::nextafter(nearest, 0.0f);
    return std::fabs((double)nearest) > std::fabs(exact) ? std::nextafter(nearest, 0.0f) : nearest;
}

// A number of a modest exponent, so that sums of two are exact in double.
#define MODEST(x) (((x)&0x80ffffffu) | 0x3f000000u)

static void rounding()
{
    AGREE(__float_as_uint(__fadd_rn(__uint_as_float(MODEST(a)), __uint_as_float(MODEST(b)))),
          as_bits(as_float(MODEST(a)) + as_float(MODEST(b))));
    AGREE(__float_as_uint(__fadd_rz(__uint_as_float(MODEST(a)), __uint_as_float(MODEST(b)))),
          as_bits(toward_zero((double)as_float(MODEST(a)) + as_float(MODEST(b)))));
    AGREE(__float_as_uint(__fmul_rz(__uint_as_float(MODEST(a)), __uint_as_float(MODEST(b)))),
          as_bits(toward_zero((double)as_float(MODEST(a)) * as_float(MODEST(b)))));
    AGREE(__float_as_uint(__fmaf_rn(__uint_as_float(MODEST(a)), __uint_as_float(MODEST(b)), 0.75f)),
          as_bits(std::fma(as_float(MODEST(a)), as_float(MODEST(b)), 0.75f)));
    AGREE(__float_as_uint(__fdiv_rn(__uint_as_float(MODEST(a)), __uint_as_float(MODEST(b)))),
          as_bits(as_float(MODEST(a)) / as_float(MODEST(b))));
    AGREE(__float_as_uint(__fsqrt_rn(fabsf(__uint_as_float(MODEST(a))))),
          as_bits(std::sqrt(std::fabs(as_float(MODEST(a))))));
    AGREE(__float_as_uint(__saturatef(__uint_as_float(a & 0xbfffffff))),
          as_bits(as_float(a & 0xbfffffff) > 0 ? std::fmin(as_float(a & 0xbfffffff), 1.0f) : 0.0f));
    AGREE((unsigned)__float2int_rn(__uint_as_float(MODEST(a)) * 1000),
          (unsigned)(int)std::nearbyint(as_float(MODEST(a)) * 1000));
    AGREE((unsigned)__float2int_rd(__uint_as_float(MODEST(a)) * 1000),
          (unsigned)(int)std::floor(as_float(MODEST(a)) * 1000));
    AGREE((unsigned)__float2int_ru(__uint_as_float(MODEST(a)) * 1000),
          (unsigned)(int)std::ceil(as_float(MODEST(a)) * 1000));
    AGREE(__float_as_uint(__uint2float_rz(a)), as_bits(toward_zero((double)a)));
    AGREE(__float_as_uint(__double2float_rz((double)a / (b | 1))),
          as_bits(toward_zero((double)a / (b | 1))));
    AGREE((u64)__double2ll_rz((double)(int)a * 65536.5), (u64)(s64)((double)(int)a * 65536.5));
    AGREE((u64)__double_as_longlong(__fma_rn((double)a, (double)b, 1.0 / (c | 1))), [&] {
        double x = std::fma((double)a, (double)b, 1.0 / (c | 1));
        u64 y;
        memcpy(&y, &x, 8);
        return y;
    }());
    AGREE((u64)__double_as_longlong(__dsqrt_rn((double)a)), [&] {
        double x = std::sqrt((double)a);
        u64 y;
        memcpy(&y, &x, 8);
        return y;
    }());
    AGREE((unsigned)(int)rintf((int)a / 8.0f), (unsigned)(int)std::rint((int)a / 8.0f));
}

// Of the mathematical functions: the error, in parts of the result, against the host's.
template <typename F> __global__ void real_kernel(double *out, F f)
{
    double x = threadIdx.x / 16.0 + 0.03125;
    out[threadIdx.x] = f(x);
}

template <typename D, typename H> static bool is_close(D device, H host, double tolerance)
{
    double *out = make(std::vector<double>(COUNT));
    bool close = true;

    real_kernel<<<1, COUNT>>>(out, device);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    std::vector<double> got = take(out, COUNT);
    for (int i = 0; i < COUNT; i++) {
        double expected = host(i / 16.0 + 0.03125);
        double error = std::fabs(got[i] - expected) / (std::fabs(expected) + 1e-3);
        close = close && error < tolerance;
    }
    MUST(cudaFree(out));
    return close;
}

#define CLOSE(f, tolerance)                                                                  \
    do {                                                                                     \
        IS_TRUE(is_close([] __device__(double x) -> double { return f(x); },                 \
                         [](double x) -> double { return std::f(x); }, 1e-14));              \
        IS_TRUE(is_close([] __device__(double x) -> double { return f((float)x); },          \
                         [](double x) -> double { return std::f((float)x); }, (tolerance))); \
    } while (0)

static void functions()
{
    CLOSE(sin, 1e-6);
    CLOSE(cos, 1e-6);
    CLOSE(tan, 1e-5);
    CLOSE(atan, 1e-6);
    CLOSE(exp, 1e-6);
    CLOSE(exp2, 1e-6);
    CLOSE(expm1, 1e-6);
    CLOSE(log, 1e-6);
    CLOSE(log1p, 1e-6);
    CLOSE(log10, 1e-6);
    CLOSE(sqrt, 1e-7);
    CLOSE(cbrt, 1e-6);
    CLOSE(sinh, 1e-6);
    CLOSE(tanh, 1e-6);
    CLOSE(asinh, 1e-6);
    CLOSE(erf, 1e-6);
    CLOSE(erfc, 1e-5);
    CLOSE(lgamma, 1e-5);
    CLOSE(tgamma, 1e-4);
    CLOSE(floor, 1e-12);
    CLOSE(round, 1e-12);
    IS_TRUE(
        is_close([] __device__(double x) -> double { return pow(x, 1.7) + powf(2.0f, (float)x); },
                 [](double x) { return std::pow(x, 1.7) + std::pow(2.0, x); }, 1e-6));
    IS_TRUE(
        is_close([] __device__(double x) -> double { return __sinf(x) + __expf(x) + __logf(x); },
                 [](double x) { return std::sin(x) + std::exp(x) + std::log(x); }, 1e-5));
    IS_TRUE(is_close(
        [] __device__(double x) -> double { return fmod(x, 0.7) + hypot(x, 2.0) + atan2(x, 3.0); },
        [](double x) { return std::fmod(x, 0.7) + std::hypot(x, 2.0) + std::atan2(x, 3.0); },
        1e-13));
}

// ---- Warps ----

__global__ void warp_kernel(const unsigned *in, unsigned *out)
{
    unsigned i = threadIdx.x, value = in[i], at = 0;
    auto put = [&](unsigned result) { out[at++ * 64 + i] = result; };

    put(__shfl_sync(0xffffffff, value, value));
    put(__shfl_up_sync(0xffffffff, value, 3));
    put(__shfl_down_sync(0xffffffff, value, 5, 16));
    put(__shfl_xor_sync(0xffffffff, value, 9));
    put((unsigned)(__shfl_sync(0xffffffff, (unsigned long long)value << 20, 7, 8) >> 10));
    put(__ballot_sync(0xffffffff, value & 1));
    put(__any_sync(0xffffffff, value == 9) << 1 | __all_sync(0xffffffff, value < 0xffffff00));
    put(__match_any_sync(0xffffffff, value % 4));
    int all;
    put(__match_all_sync(0xffffffff, value / 0xffffffff, &all) + all);
    put(i & 1 ? __ballot_sync(0xaaaaaaaa, value & 2) : __activemask());
    if (i % 32 < 20)
        put(__shfl_down_sync(0x000fffff, value, 1));
    put(__fns(value, 8, 2));
}

static void warps()
{
    std::vector<unsigned> values(64), results(64 * 12, 0);
    uint32_t state = 3;

    for (unsigned &value : values)
        value = next_random(state);
    unsigned *in = make(values), *out = make(results);
    warp_kernel<<<1, 64>>>(in, out);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    results = take(out, results.size());
    printf("%016llx\n", (unsigned long long)checksum(results.data(), 64 * 9 * sizeof(unsigned)));
    for (int i = 0; i < 64; i++) {
        const unsigned *warp = &values[i / 32 * 32];
        unsigned ballot = 0;
        for (int lane = 0; lane < 32; lane++)
            ballot |= (warp[lane] & 1) << lane;
        IS_TRUE(results[i] == warp[values[i] % 32]);
        IS_TRUE(results[64 + i] == warp[i % 32 < 3 ? i % 32 : i % 32 - 3]);
        IS_TRUE(results[2 * 64 + i] == warp[i % 16 + 5 < 16 ? i % 32 + 5 : i % 32]);
        IS_TRUE(results[3 * 64 + i] == warp[i % 32 ^ 9]);
        IS_TRUE(results[5 * 64 + i] == ballot);
    }
    MUST(cudaFree(in));
    MUST(cudaFree(out));
}

int main()
{
    RUN(bits);
    RUN(integers);
    RUN(packed_integers);
    RUN(rounding);
    RUN(functions);
    RUN(warps);
    return check_close();
}
