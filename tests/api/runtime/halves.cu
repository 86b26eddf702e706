// SPDX-License-Identifier: Apache-2.0
// The narrow floating-point types: what the device computes and converts must be what CUDA's own
// headers do on the host.
#include "check.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#define COUNT 512

struct input {
    unsigned bits;
    float real;
    double wide;
    long long integer;
};

static std::vector<input> inputs()
{
    static const unsigned edges[] = {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x7bff,
                                     0x7c00, 0xfc00, 0x7e00, 0x3c00, 0xbc00, 0x3bff,
                                     0x7f80, 0xff80, 0x0080, 0x7f7f};
    std::vector<input> all(COUNT);
    uint32_t state = 21;

    for (int i = 0; i < COUNT; i++) {
        unsigned low = next_random(state), high = next_random(state);
        input &one = all[i];
        one.bits = i < 256 ? edges[i / 16] << 16 | edges[i % 16] : high << 16 ^ low;
        one.wide = (double)(int)(low << 8) * (i % 2 ? 1e-5 : 1e-9) * (i % 3 ? 1 : 3e4);
        one.real = (float)one.wide;
        one.integer =
            (long long)((unsigned long long)low << 40 ^ (unsigned long long)high << 8 ^ i);
        one.integer >>= i % 64;
    }
    return all;
}

template <typename F> __global__ void map_kernel(const input *in, unsigned *out, F f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = f(in[i]);
}

// The payload of what is no number is free.
__host__ __device__ static unsigned half_bits(__half x)
{
    return __hisnan(x) ? 0x7fff : __half_as_ushort(x);
}

__host__ __device__ static unsigned half_bits(__nv_bfloat16 x)
{
    return __hisnan(x) ? 0x7fff : __bfloat16_as_ushort(x);
}

// Which zero is the smaller one depends on the GPU's generation.
__host__ __device__ static unsigned without_zero_sign(unsigned bits)
{
    return bits & 0x7fff ? bits : 0;
}

// The host has no fused one; in double nothing is lost that matters here.
__host__ __device__ static __half fused(__half a, __half b, __half c)
{
#ifdef __CUDA_ARCH__
    return __hfma(a, b, c);
#else
    return __double2half((double)__half2float(a) * __half2float(b) + __half2float(c));
#endif
}

template <typename F> static bool agree(F f)
{
    std::vector<input> all = inputs();
    input *in = make(all);
    unsigned *out = make(std::vector<unsigned>(COUNT));
    bool same = true;

    map_kernel<<<2, COUNT / 2>>>(in, out, f);
    MUST(cudaGetLastError());
    std::vector<unsigned> got = take(out, COUNT);
    for (int i = 0; i < COUNT && same; i++) {
        same = got[i] == f(all[i]);
        if (!same)
            printf("%08x %g %g %lld: %x instead of %x\n", all[i].bits, all[i].real, all[i].wide,
                   all[i].integer, got[i], f(all[i]));
    }
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    return same;
}

// An expression of two halves x and y (or bfloats) and of the input in.
#define HALVES(expression)                                              \
    IS_TRUE(agree([] __host__ __device__(const input &in) -> unsigned { \
        __half x = __ushort_as_half((unsigned short)in.bits);           \
        __half y = __ushort_as_half((unsigned short)(in.bits >> 16));   \
        (void)x, (void)y;                                               \
        return (expression);                                            \
    }))
#define BFLOATS(expression)                                                      \
    IS_TRUE(agree([] __host__ __device__(const input &in) -> unsigned {          \
        __nv_bfloat16 x = __ushort_as_bfloat16((unsigned short)in.bits);         \
        __nv_bfloat16 y = __ushort_as_bfloat16((unsigned short)(in.bits >> 16)); \
        (void)x, (void)y;                                                        \
        return (expression);                                                     \
    }))

static void half_arithmetic()
{
    HALVES(half_bits(__hadd(x, y)));
    HALVES(half_bits(__hsub(x, y)));
    HALVES(half_bits(__hmul(x, y)));
    HALVES(half_bits(fused(x, y, x)));
    HALVES(half_bits(__hadd_sat(x, y)));
    HALVES(half_bits(__hmul_sat(x, y)));
    HALVES(half_bits(__hneg(x)));
    HALVES(without_zero_sign(half_bits(__hmin(x, y))));
    HALVES(without_zero_sign(half_bits(__hmax_nan(x, y))));
    HALVES(__hlt(x, y) | __hle(x, y) << 1 | __heq(x, y) << 2 | __hne(x, y) << 3 |
           __hgtu(x, y) << 4);
}

static void half_conversions()
{
    HALVES(half_bits(__float2half_rn(in.real)));
    HALVES(half_bits(__float2half_rz(in.real)));
    HALVES(half_bits(__float2half_rd(in.real)));
    HALVES(half_bits(__float2half_ru(in.real)));
    HALVES(half_bits(__double2half(in.wide)));
    HALVES(half_bits(__int2half_rn((int)in.integer)));
    HALVES(half_bits(__int2half_rz((int)in.integer)));
    HALVES(half_bits(__int2half_rd((int)in.integer)));
    HALVES(half_bits(__int2half_ru((int)in.integer)));
    HALVES(half_bits(__uint2half_rd((unsigned)in.integer)));
    HALVES(half_bits(__ll2half_ru(in.integer)));
    HALVES(half_bits(__ull2half_rn((unsigned long long)in.integer)));
    HALVES(half_bits(__short2half_rd((short)in.integer)));
    HALVES((unsigned)__half2int_rz(x));
    HALVES(__half2uint_rz(x));
    HALVES((unsigned short)__half2short_rz(x));
    HALVES((unsigned)__half2ll_rz(x));
}

static void bfloat_arithmetic()
{
    BFLOATS(half_bits(__hadd(x, y)));
    BFLOATS(half_bits(__hsub(x, y)));
    BFLOATS(half_bits(__hmul(x, y)));
    BFLOATS(without_zero_sign(half_bits(__hmax(x, y))));
    BFLOATS(without_zero_sign(half_bits(__hmin_nan(x, y))));
    BFLOATS(__hlt(x, y) | __hle(x, y) << 1 | __heq(x, y) << 2 | __hne(x, y) << 3);
}

static void bfloat_conversions()
{
    BFLOATS(half_bits(__float2bfloat16_rn(in.real)));
    BFLOATS(half_bits(__float2bfloat16_rz(in.real)));
    BFLOATS(half_bits(__float2bfloat16_rd(in.real)));
    BFLOATS(half_bits(__float2bfloat16_ru(in.real)));
    BFLOATS(half_bits(__double2bfloat16(in.wide)));
    BFLOATS(half_bits(__int2bfloat16_rn((int)in.integer)));
    BFLOATS(half_bits(__ull2bfloat16_rn((unsigned long long)in.integer)));
    BFLOATS((unsigned)__bfloat162int_rz(x));
    BFLOATS((unsigned short)__bfloat162ushort_rz(x));
}

static void narrower()
{
    HALVES(__nv_cvt_float_to_fp8(in.real, __NV_SATFINITE, __NV_E4M3));
    HALVES(__nv_cvt_float_to_fp8(in.real, __NV_SATFINITE, __NV_E5M2));
    HALVES(__nv_cvt_float_to_fp8(in.real, __NV_NOSAT, __NV_E4M3));
    HALVES(__nv_cvt_halfraw_to_fp8(x, __NV_SATFINITE, __NV_E5M2));
    HALVES(half_bits(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)in.bits, __NV_E4M3))));
    HALVES(half_bits(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)in.bits, __NV_E5M2))));
    HALVES(__nv_cvt_float_to_fp6(in.real, __NV_E2M3, cudaRoundNearest));
    HALVES(__nv_cvt_float_to_fp6(in.real, __NV_E3M2, cudaRoundNearest));
    HALVES(__nv_cvt_float_to_fp4(in.real, __NV_E2M1, cudaRoundNearest));
    HALVES(half_bits(__half(__nv_cvt_fp4_to_halfraw((__nv_fp4_storage_t)in.bits, __NV_E2M1))));
}

// ---- Pairs, and functions that only the device has ----

__global__ void pairs_kernel(__half2 *out)
{
    __half2 a = __floats2half2_rn(1.5f, -2.0f), b = __floats2half2_rn(0.25f, 8.0f);

    out[0] = __hadd2(a, b);
    out[1] = __hfma2(a, b, a);
    out[2] = __h2div(a, b);
    out[3] = __hgt2(a, b);
    out[4] = __hmax2(a, b);
    out[5] = __lowhigh2highlow(a);
    out[6] = __hcmadd(a, b, b);
    out[7] = h2sqrt(__habs2(b));
    out[8] = h2rcp(b);
    out[9] = h2exp2(a);
    out[10] = h2log2(b);
    out[11] = h2rint(a);
    out[12] = __halves2half2(hceil(__low2half(a)), hfloor(__high2half(b)));
    if (__hbgt2(b, b) || !__hbeq2(a, a))
        out[0] = b;
    atomicAdd(&out[13], a);
    atomicAdd(reinterpret_cast<__half *>(&out[14]), __low2half(a));
}

static void pairs()
{
    __half2 *out = make(std::vector<__half2>(15));
    MUST(cudaMemset(out, 0, 15 * sizeof(*out)));

    pairs_kernel<<<1, 1>>>(out);
    MUST(cudaGetLastError());
    for (__half2 one : take(out, 15))
        printf("%g,%g ", __half2float(__low2half(one)), __half2float(__high2half(one)));
    puts("");
    MUST(cudaFree(out));
}

int main()
{
    RUN(half_arithmetic);
    RUN(half_conversions);
    RUN(bfloat_arithmetic);
    RUN(bfloat_conversions);
    RUN(narrower);
    RUN(pairs);
    return check_close();
}
