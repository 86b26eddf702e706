// SPDX-License-Identifier: Apache-2.0
// Matrices: nvcuda::wmma in every element type, and mma with ldmatrix as kernels spell it out.
// All values are small integers, so every sum is exact and every order of adding gives the same.
#include "check.cuh"

#include <climits>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

struct problem {
    int m, n, k;
    std::vector<int> a, b, c; // row by row
};

static problem make_problem(int m, int n, int k, int low, int high)
{
    problem p = {m, n, k, {}, {}, {}};
    uint32_t state = m * 31 + n * 7 + k;
    auto fill = [&](std::vector<int> &values, int count) {
        for (int i = 0; i < count; i++)
            values.push_back(low + (int)(next_random(state) % (high - low + 1)));
    };
    fill(p.a, m * k);
    fill(p.b, k * n);
    fill(p.c, m * n);
    return p;
}

static std::vector<int> multiply(const problem &p)
{
    std::vector<int> d = p.c;
    for (int i = 0; i < p.m; i++)
        for (int j = 0; j < p.n; j++)
            for (int l = 0; l < p.k; l++)
                d[i * p.n + j] += p.a[i * p.k + l] * p.b[l * p.n + j];
    return d;
}

static std::vector<int> transpose(const std::vector<int> &from, int rows, int columns)
{
    std::vector<int> to(from.size());
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
    return to;
}

template <typename T> static T *make_as(const std::vector<int> &values)
{
    std::vector<T> converted;
    for (int value : values)
        converted.push_back(T((float)value));
    return make(converted);
}

template <typename T> static bool is_same(const T *found, const std::vector<int> &expected)
{
    std::vector<T> values = take(found, expected.size());
    for (size_t i = 0; i < values.size(); i++) {
        if ((float)values[i] != (float)expected[i])
            return false;
    }
    return true;
}

// ---- wmma ----

// A warp a tile of the result; k runs in steps of the tile's depth.
template <int M, int N, int K, typename Fragment, typename Memory, typename Sum, typename LayoutA,
          typename LayoutB>
__global__ void by_wmma(const Memory *a, const Memory *b, const Sum *c, Sum *d, int m, int n, int k)
{
    constexpr bool row_a = std::is_same<LayoutA, wmma::row_major>::value;
    constexpr bool row_b = std::is_same<LayoutB, wmma::row_major>::value;
    int i = blockIdx.y * M, j = blockIdx.x * N;
    wmma::fragment<wmma::matrix_a, M, N, K, Fragment, LayoutA> left;
    wmma::fragment<wmma::matrix_b, M, N, K, Fragment, LayoutB> right;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;

    wmma::load_matrix_sync(sum, c + i * n + j, n, wmma::mem_row_major);
    for (int l = 0; l < k; l += K) {
        wmma::load_matrix_sync(left, row_a ? a + i * k + l : a + l * m + i, row_a ? k : m);
        wmma::load_matrix_sync(right, row_b ? b + l * n + j : b + j * k + l, row_b ? n : k);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(d + i * n + j, sum, n, wmma::mem_row_major);
}

template <int M, int N, int K, typename Fragment, typename Memory, typename Sum, typename LayoutA,
          typename LayoutB>
static void check_wmma(int low, int high)
{
    problem p = make_problem(4 * M, 3 * N, 5 * K, low, high);
    bool row_a = std::is_same<LayoutA, wmma::row_major>::value;
    bool row_b = std::is_same<LayoutB, wmma::row_major>::value;
    Memory *a = make_as<Memory>(row_a ? p.a : transpose(p.a, p.m, p.k));
    Memory *b = make_as<Memory>(row_b ? p.b : transpose(p.b, p.k, p.n));
    Sum *c = make_as<Sum>(p.c), *d = make_as<Sum>(p.c);

    by_wmma<M, N, K, Fragment, Memory, Sum, LayoutA, LayoutB>
        <<<dim3(p.n / N, p.m / M), 32>>>(a, b, c, d, p.m, p.n, p.k);
    MUST(cudaDeviceSynchronize());
    IS_TRUE(is_same(d, multiply(p)));
    for (void *pointer : {(void *)a, (void *)b, (void *)c, (void *)d})
        MUST(cudaFree(pointer));
}

using row = wmma::row_major;
using col = wmma::col_major;

static void wmma_of_halves()
{
    check_wmma<16, 16, 16, half, half, float, row, col>(-4, 4);
    check_wmma<16, 16, 16, half, half, float, col, row>(-4, 4);
    check_wmma<16, 16, 16, half, half, half, row, row>(-2, 2);
    check_wmma<32, 8, 16, half, half, float, row, row>(-4, 4);
    check_wmma<8, 32, 16, half, half, float, col, col>(-4, 4);
}

static void wmma_of_bfloats()
{
    check_wmma<16, 16, 16, __nv_bfloat16, __nv_bfloat16, float, row, col>(-4, 4);
    check_wmma<8, 32, 16, __nv_bfloat16, __nv_bfloat16, float, col, row>(-4, 4);
}

static void wmma_of_bytes()
{
    check_wmma<16, 16, 16, signed char, signed char, int, row, col>(-128, 127);
    check_wmma<32, 8, 16, unsigned char, unsigned char, int, col, row>(0, 255);
}

static void wmma_of_tf32()
{
    check_wmma<16, 16, 8, wmma::precision::tf32, float, float, row, col>(-4, 4);
    check_wmma<16, 16, 8, wmma::precision::tf32, float, float, col, row>(-4, 4);
}

static void wmma_of_doubles()
{
    check_wmma<8, 8, 4, double, double, double, row, col>(-1000, 1000);
    check_wmma<8, 8, 4, double, double, double, col, row>(-1000, 1000);
}

// What a program may do to the elements of a fragment without knowing where they are.
__global__ void on_elements(const half *a, float *d)
{
    __shared__ half tile[16 * 16];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, row> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, row> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;

    for (int i = threadIdx.x; i < 16 * 16; i += 32)
        tile[i] = a[i];
    __syncwarp();
    wmma::load_matrix_sync(left, tile, 16);
    wmma::fill_fragment(right, __float2half(1));
    wmma::fill_fragment(sum, 0);
    for (int i = 0; i < left.num_elements; i++)
        left.x[i] = __hmul(left.x[i], __float2half(2));
    wmma::mma_sync(sum, left, right, sum);
    for (int i = 0; i < sum.num_elements; i++)
        sum.x[i] += 0.5f;
    wmma::store_matrix_sync(d, sum, 16, wmma::mem_col_major);
}

static void elements_of_fragments()
{
    problem p = make_problem(16, 16, 16, -8, 8);
    half *a = make_as<half>(p.a);
    float *d = make_as<float>(p.c);

    on_elements<<<1, 32>>>(a, d);
    std::vector<float> found = take(d, 256);
    bool right = true;
    for (int i = 0; i < 16; i++) {
        float expected = 0.5f;
        for (int l = 0; l < 16; l++)
            expected += 2 * p.a[i * 16 + l];
        for (int j = 0; j < 16; j++)
            right &= found[j * 16 + i] == expected;
    }
    IS_TRUE(right);
    MUST(cudaFree(a));
    MUST(cudaFree(d));
}

// ---- mma and ldmatrix ----

__device__ unsigned shared_address(const void *pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ void load_matrices(unsigned (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row)));
}

__device__ void load_transposed(unsigned (&r)[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row)));
}

__device__ void multiply_halves(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// A block of two warps a tile of 16 by 16, staged through shared memory by cp.async.
__global__ void by_mma(const half *a, const half *b, const float *c, float *d, int n, int k)
{
    __shared__ __align__(16) half left[16][16], right[16][16];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int i = blockIdx.y * 16, j = blockIdx.x * 16;
    int row = i + lane / 4, column = j + warp * 8 + lane % 4 * 2;
    float sum[4] = {c[row * n + column], c[row * n + column + 1], c[(row + 8) * n + column],
                    c[(row + 8) * n + column + 1]};

    for (int l = 0; l < k; l += 16) {
        int r = lane / 2, s = lane % 2 * 8;
        const half *from = warp ? &b[(l + r) * n + j + s] : &a[(i + r) * k + l + s];
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         shared_address(warp ? &right[r][s] : &left[r][s])),
                     "l"(from));
        asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        unsigned x[4], y[2];
        load_matrices(x, &left[lane % 16][lane / 16 * 8]);
        load_transposed(y, &right[lane % 16][warp * 8]);
        multiply_halves(sum, x, y);
        __syncthreads();
    }
    d[row * n + column] = sum[0];
    d[row * n + column + 1] = sum[1];
    d[(row + 8) * n + column] = sum[2];
    d[(row + 8) * n + column + 1] = sum[3];
}

static void mma_of_halves()
{
    problem p = make_problem(64, 48, 80, -4, 4);
    half *a = make_as<half>(p.a), *b = make_as<half>(p.b);
    float *c = make_as<float>(p.c), *d = make_as<float>(p.c);

    by_mma<<<dim3(p.n / 16, p.m / 16), 64>>>(a, b, c, d, p.n, p.k);
    MUST(cudaDeviceSynchronize());
    IS_TRUE(is_same(d, multiply(p)));
    for (void *pointer : {(void *)a, (void *)b, (void *)c, (void *)d})
        MUST(cudaFree(pointer));
}

// Four bytes of a row of A, and four of a column of B, are a register.
__global__ void by_mma_s8(const signed char *a, const signed char *b_transposed, int *d)
{
    int lane = threadIdx.x, row = lane / 4, column = lane % 4 * 4;
    auto word = [](const signed char *from) { return *(const unsigned *)from; };
    unsigned a0 = word(a + row * 32 + column), a1 = word(a + (row + 8) * 32 + column);
    unsigned a2 = word(a + row * 32 + column + 16), a3 = word(a + (row + 8) * 32 + column + 16);
    unsigned b0 = word(b_transposed + row * 32 + column);
    unsigned b1 = word(b_transposed + row * 32 + column + 16);
    int *to = d + row * 8 + lane % 4 * 2;

    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(to[0]), "+r"(to[1]), "+r"(to[64]), "+r"(to[65])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

static void mma_of_bytes()
{
    problem p = make_problem(16, 8, 32, -128, 127);
    auto bytes = [](const std::vector<int> &values) {
        return make(std::vector<signed char>(values.begin(), values.end()));
    };
    signed char *a = bytes(p.a), *b = bytes(transpose(p.b, p.k, p.n));
    std::vector<int> expected = multiply(p);
    // What is added to one element takes it beyond the largest integer.
    int gained = expected[0] - p.c[0];
    p.c[0] = gained > 0 ? INT_MAX - 1 : INT_MIN + 1;
    expected[0] = gained > 0 ? INT_MAX : INT_MIN;
    int *d = make(p.c);

    by_mma_s8<<<1, 32>>>(a, b, d);
    IS_TRUE(take(d, 128) == expected);
    for (void *pointer : {(void *)a, (void *)b, (void *)d})
        MUST(cudaFree(pointer));
}

// mma.m8n8k4: lanes 0 to 3 and 16 to 19 compute one product of 8 by 8, the next ones the next. A
// has rows in the lanes, and so has B: elements of one k.
__global__ void by_quads(const half *a, const half *b, float *d)
{
    int lane = threadIdx.x, quad = lane % 16 / 4, upper = lane / 16 * 4, member = lane % 4;
    const unsigned *x = (const unsigned *)(a + quad * 32 + (member + upper) * 4);
    const unsigned *y = (const unsigned *)(b + quad * 32 + member * 8 + upper);
    float *to = d + quad * 64 + (upper + (lane & 1)) * 8 + (lane & 2);

    asm volatile("mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+f"(to[0]), "+f"(to[1]), "+f"(to[16]), "+f"(to[17]), "+f"(to[4]), "+f"(to[5]),
                   "+f"(to[20]), "+f"(to[21])
                 : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]));
}

// The same in columns and with sums of 16 bits.
__global__ void by_quads_in_columns(const half *a, const half *b, half *d)
{
    int lane = threadIdx.x, quad = lane % 16 / 4, upper = lane / 16 * 4, member = lane % 4;
    const unsigned *x = (const unsigned *)(a + quad * 32 + member * 8 + upper);
    const unsigned *y = (const unsigned *)(b + quad * 32 + (member + upper) * 4);
    unsigned *to = (unsigned *)(d + quad * 64 + (member + upper) * 8);

    asm volatile("mma.sync.aligned.m8n8k4.col.col.f16.f16.f16.f16 "
                 "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3};"
                 : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                 : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]));
}

static void append(std::vector<int> &to, const std::vector<int> &from)
{
    to.insert(to.end(), from.begin(), from.end());
}

static void mma_in_quads()
{
    std::vector<int> a, b, c, expected, a_columns, b_columns;
    for (int i = 0; i < 4; i++) {
        problem p = make_problem(8, 8, 4, -4 - i, 4);
        append(a, p.a);
        append(b, p.b);
        append(c, p.c);
        append(expected, multiply(p));
        append(a_columns, transpose(p.a, 8, 4));
        append(b_columns, transpose(p.b, 4, 8));
    }
    half *left = make_as<half>(a), *right = make_as<half>(b), *halves = make_as<half>(c);
    half *turned_left = make_as<half>(a_columns), *turned_right = make_as<half>(b_columns);
    float *sums = make_as<float>(c);

    by_quads<<<1, 32>>>(left, right, sums);
    by_quads_in_columns<<<1, 32>>>(turned_left, turned_right, halves);
    MUST(cudaDeviceSynchronize());
    IS_TRUE(is_same(sums, expected));
    IS_TRUE(is_same(halves, expected));
    for (void *pointer : {(void *)left, (void *)right, (void *)halves, (void *)turned_left,
                          (void *)turned_right, (void *)sums})
        MUST(cudaFree(pointer));
}

int main()
{
    RUN(wmma_of_halves);
    RUN(wmma_of_bfloats);
    RUN(wmma_of_bytes);
    RUN(wmma_of_tf32);
    RUN(wmma_of_doubles);
    RUN(elements_of_fragments);
    RUN(mma_of_halves);
    RUN(mma_of_bytes);
    RUN(mma_in_quads);
    return check_close();
}
