// SPDX-License-Identifier: Apache-2.0
// What C++ in a kernel becomes: frames, calls direct and through pointers, recursion, switches,
// memory of a thread's own. Compiled for a debugger it looks quite different, see matrix.py.
#include "check.cuh"

#include <cassert>
#include <cstdarg>

#define THREADS 64

// Runs a kernel of (results, one number a thread) and gives the results.
template <typename T>
static std::vector<T> results_of(void (*kernel)(T *, int), int count = THREADS)
{
    T *out = make(std::vector<T>(count));

    kernel<<<1, count>>>(out, 7);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    std::vector<T> results = take(out, count);
    MUST(cudaFree(out));
    return results;
}

// The same function on the host must give the same.
#define SAME(type, kernel, function)                     \
    do {                                                 \
        std::vector<type> results = results_of(kernel);  \
        bool same = true;                                \
        for (int i = 0; i < (int)results.size(); i++)    \
            same = same && results[i] == function(i, 7); \
        IS_TRUE(same);                                   \
    } while (0)

// ---- Calls ----

__host__ __device__ __noinline__ int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__host__ __device__ int ackermann_of(int i, int)
{
    return ackermann(i % 3, i % 5);
}

__global__ void recursion_kernel(int *out, int n)
{
    out[threadIdx.x] = ackermann_of(threadIdx.x, n);
}

static void recursion()
{
    SAME(int, recursion_kernel, ackermann_of);
}

struct shape {
    int size;
    __host__ __device__ explicit shape(int size) : size(size)
    {
    }
    __host__ __device__ virtual int area() const = 0;
    __host__ __device__ virtual ~shape()
    {
    }
};

struct square : shape {
    using shape::shape;
    __host__ __device__ int area() const override
    {
        return size * size;
    }
};

struct triangle : square {
    using square::square;
    __host__ __device__ int area() const override
    {
        return square::area() / 2;
    }
};

struct round_one : shape {
    using shape::shape;
    __host__ __device__ int area() const override
    {
        return 355 * size * size / 113;
    }
};

__host__ __device__ int area_of(int i, int n)
{
    shape *one = i % 3 == 0   ? static_cast<shape *>(new square(i))
                 : i % 3 == 1 ? static_cast<shape *>(new triangle(i))
                              : static_cast<shape *>(new round_one(i));
    int area = one->area() + n;

    delete one;
    return area;
}

__global__ void virtual_kernel(int *out, int n)
{
    out[threadIdx.x] = area_of(threadIdx.x, n);
}

static void virtual_functions()
{
    SAME(int, virtual_kernel, area_of);
}

typedef int (*operation)(int, int);
__host__ __device__ __noinline__ int plus(int a, int b)
{
    return a + b;
}
__host__ __device__ __noinline__ int minus(int a, int b)
{
    return a - b;
}
__host__ __device__ __noinline__ int times(int a, int b)
{
    return a * b;
}
__device__ operation table[3] = {plus, minus, times};

__host__ __device__ int by_table(int i, int n)
{
#ifdef __CUDA_ARCH__
    return table[i % 3](i, n);
#else
    return i % 3 == 0 ? plus(i, n) : i % 3 == 1 ? minus(i, n) : times(i, n);
#endif
}

__global__ void pointers_kernel(int *out, int n)
{
    out[threadIdx.x] = by_table(threadIdx.x, n);
}

static void function_pointers()
{
    SAME(int, pointers_kernel, by_table);
}

struct large {
    int words[24];
    double number;
};

__host__ __device__ __noinline__ large turn(large one, int by)
{
    large result = one;
    for (int i = 0; i < 24; i++)
        result.words[i] = one.words[(i + by) % 24];
    result.number = one.number / 2;
    return result;
}

__host__ __device__ long long by_value(int i, int n)
{
    large one;
    for (int j = 0; j < 24; j++)
        one.words[j] = i * j;
    one.number = i;
    one = turn(turn(one, n), i % 5);
    return one.words[3] * 1000ll + (int)(one.number * 4);
}

__global__ void values_kernel(long long *out, int n)
{
    out[threadIdx.x] = by_value(threadIdx.x, n);
}

static void large_values()
{
    SAME(long long, values_kernel, by_value);
}

template <typename F> __host__ __device__ int twice(F function, int x)
{
    return function(function(x));
}

__host__ __device__ int with_lambda(int i, int n)
{
    return twice([=](int x) { return x * n + i; }, i);
}

__global__ void lambda_kernel(int *out, int n)
{
    out[threadIdx.x] = with_lambda(threadIdx.x, n);
}

static void lambdas()
{
    SAME(int, lambda_kernel, with_lambda);
}

__host__ __device__ __noinline__ int sum_of(int count, ...)
{
    va_list rest;
    int sum = 0;

    va_start(rest, count);
    for (int i = 0; i < count; i++)
        sum += i % 2 ? (int)va_arg(rest, double) : va_arg(rest, int);
    va_end(rest);
    return sum;
}

__host__ __device__ int variadic(int i, int n)
{
    return sum_of(4, i, 2.5 * n, i * i, 8.25) + sum_of(1, n);
}

__global__ void variadic_kernel(int *out, int n)
{
    out[threadIdx.x] = variadic(threadIdx.x, n);
}

static void variadic_functions()
{
    SAME(int, variadic_kernel, variadic);
}

// ---- Control flow ----

__host__ __device__ int chosen(int i, int n)
{
    int sum = n;
    for (int round = 0; round < 3; round++) {
        switch ((i + round) % 9) {
        case 0:
            sum += 3;
            break;
        case 1:
            sum ^= i;
        case 2:
            sum *= 5;
            break;
        case 3:
            continue;
        case 4:
            return sum - i;
        case 5:
            sum = sum << 2 | round;
            break;
        case 6:
            goto out;
        case 7:
            sum %= 1000;
            break;
        default:
            sum += i > 30 ? 11 : -11;
        }
        sum++;
    }
out:
    return sum;
}

__global__ void switch_kernel(int *out, int n)
{
    out[threadIdx.x] = chosen(threadIdx.x, n);
}

static void switches()
{
    SAME(int, switch_kernel, chosen);
}

__host__ __device__ int collatz(int i, int n)
{
    int steps = 0;
    for (unsigned x = i + n; x != 1; steps++) {
        if (x % 2 == 0) {
            x /= 2;
            continue;
        }
        do
            x = 3 * x + 1;
        while (x % 2);
    }
    return steps;
}

__global__ void loops_kernel(int *out, int n)
{
    if (threadIdx.x % 8 == 5 && n == 8)
        return;
    out[threadIdx.x] = collatz(threadIdx.x, n);
}

static void loops()
{
    SAME(int, loops_kernel, collatz);
}

// ---- Memory ----

__host__ __device__ int sorted(int i, int n)
{
    int values[16];
    for (int j = 0; j < 16; j++)
        values[j] = (i * 37 + j * j * 11) % 101;
    for (int j = 1; j < 16; j++) {
        for (int k = j; k > 0 && values[k - 1] > values[k]; k--) {
            int value = values[k];
            values[k] = values[k - 1];
            values[k - 1] = value;
        }
    }
    return values[n] * 1000 + values[i % 16];
}

__global__ void local_kernel(int *out, int n)
{
    out[threadIdx.x] = sorted(threadIdx.x, n);
}

static void local_arrays()
{
    SAME(int, local_kernel, sorted);
}

__global__ void alloca_kernel(int *out, int n)
{
    int i = threadIdx.x, sum = 0;
    for (int round = 1; round < 3; round++) {
        int *room = static_cast<int *>(__builtin_alloca((i + round) * sizeof(int)));
        for (int j = 0; j < i + round; j++)
            room[j] = j * n;
        for (int j = 0; j < i + round; j++)
            sum += room[j];
    }
    out[i] = sum;
}

static int alloca_sum(int i, int n)
{
    return n * ((i + 1) * i / 2 + (i + 2) * (i + 1) / 2);
}

static void room_on_the_stack()
{
    SAME(int, alloca_kernel, alloca_sum);
}

__constant__ int coefficients[4] = {3, 1, 4, 1};
__device__ int counter = 5;
__device__ const char *const words[] = {"software", "gpu"};
__device__ struct {
    short low;
    double middle;
    char text[6];
} mixed = {-2, 2.5, "hello"};

__global__ void variables_kernel(int *out, int n)
{
    __shared__ int all[THREADS];
    int i = threadIdx.x;
    const int *where = i % 2 ? all : coefficients; // generic, of either space

    all[i] = i * n;
    __syncthreads();
    atomicAdd(&counter, 1);
    out[i] = where[i % 4] + words[i % 2][i % 3] + mixed.low + (int)(mixed.middle * 2) +
             mixed.text[i % 5];
}

static int variable_sum(int i, int n)
{
    static const int constants[4] = {3, 1, 4, 1};
    int first = i % 2 ? i % 4 * n : constants[i % 4];

    return first + (i % 2 ? "gpu" : "software")[i % 3] - 2 + 5 + "hello"[i % 5];
}

static void variables()
{
    int value;

    SAME(int, variables_kernel, variable_sum);
    MUST(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
    IS_TRUE(value == 5 + THREADS);
}

struct node {
    int value;
    node *next;
};

__global__ void heap_kernel(int *out, int n)
{
    node *list = nullptr;
    int i = threadIdx.x, sum = 0;

    for (int j = 0; j < i % 7 + 1; j++) {
        node *one = static_cast<node *>(malloc(sizeof(node)));
        assert(one);
        *one = {j * n, list};
        list = one;
    }
    while (list) {
        node *next = list->next;
        sum += list->value;
        free(list);
        list = next;
    }
    out[i] = sum;
}

static int heap_sum(int i, int n)
{
    int count = i % 7 + 1;
    return n * count * (count - 1) / 2;
}

static void heap()
{
    SAME(int, heap_kernel, heap_sum);
}

// ---- Numbers ----

__host__ __device__ unsigned long long wide(int i, int n)
{
    unsigned __int128 x =
        ((unsigned __int128)0x123456789abcdef0ull << 64) | (i * 0x9e3779b97f4a7c15ull);
    __int128 y = -(__int128)(i + n) << 70;

    x = x * (i + 3) + (x >> (i % 100)) - (x << (i % 50));
    y = y / (i + 1) + (y >> 3) * n;
    x ^= (unsigned __int128)y % 1000003;
    return (unsigned long long)x ^ (unsigned long long)(x >> 64) ^ (unsigned long long)(y >> 60);
}

__global__ void wide_kernel(unsigned long long *out, int n)
{
    out[threadIdx.x] = wide(threadIdx.x, n);
}

static void wide_numbers()
{
    SAME(unsigned long long, wide_kernel, wide);
}

struct bits {
    unsigned a : 3;
    int b : 7;
    unsigned long long c : 40;
    bool d : 1;
};

__host__ __device__ long long mixture(int i, int n)
{
    bits one = {(unsigned)i, i - 40, 0xffffffffffull - i, i % 2 == 0};
    volatile signed char narrow = (signed char)(i * 5);
    unsigned short middle = (unsigned short)(i * 4099);
    union {
        float number;
        unsigned pattern;
    } both = {i + 0.5f};

    one.c += n;
    one.b -= narrow;
    return one.a + one.b + (long long)one.c + one.d + narrow / 3 + middle % 77 + both.pattern;
}

__global__ void mixture_kernel(long long *out, int n)
{
    out[threadIdx.x] = mixture(threadIdx.x, n);
}

static void fields_and_unions()
{
    SAME(long long, mixture_kernel, mixture);
}

// ---- Words of the kernel's own ----

__global__ void says(int n)
{
    printf("%d%% of %s: %5.2f, %c, %lld, %x\n", n, "it", n / 3.0, 'z', -5ll * n, 0xbeef + n);
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 7; @p trap; }" ::"r"(n));
}

static void words_of_a_kernel()
{
    says<<<1, 1>>>(7);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
}

int main()
{
    RUN(recursion);
    RUN(virtual_functions);
    RUN(function_pointers);
    RUN(large_values);
    RUN(lambdas);
    RUN(variadic_functions);
    RUN(switches);
    RUN(loops);
    RUN(local_arrays);
    RUN(room_on_the_stack);
    RUN(variables);
    RUN(heap);
    RUN(wide_numbers);
    RUN(fields_and_unions);
    RUN(words_of_a_kernel);
    return check_close();
}
