// SPDX-License-Identifier: Apache-2.0
// Algorithms of Thrust and CUB again and again with random sizes, against the host. Their blocks
// pass values on to each other without locks, so an error of the memory model shows as a wrong
// result now and then. A part of algorithms.cu, as the headers take most of the time to compile.
#ifndef FUNNEL_TEST_REPEATED_ALGORITHMS_CUH
#define FUNNEL_TEST_REPEATED_ALGORITHMS_CUH

#include "check.cuh"

#include <algorithm>
#include <map>
#include <numeric>

#include <cub/device/device_histogram.cuh>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#define LARGEST 60000

namespace repeated {

typedef std::vector<int> ints;
typedef thrust::device_vector<int> device_ints;

struct is_odd {
    __host__ __device__ bool operator()(int x) const
    {
        return x & 1;
    }
};

static ints taken(const device_ints &from, size_t size)
{
    ints to(size);
    thrust::copy(from.begin(), from.begin() + size, to.begin());
    return to;
}

static bool scan(const ints &in)
{
    device_ints values(in), sums(in.size());
    ints expected(in.size());
    thrust::inclusive_scan(values.begin(), values.end(), sums.begin());
    std::partial_sum(in.begin(), in.end(), expected.begin());
    return taken(sums, in.size()) == expected;
}

// Runs of equal keys, of all lengths from one to some hundred.
static ints keys_of(const ints &in)
{
    ints keys(in.size());
    for (size_t i = 1; i < in.size(); i++)
        keys[i] = keys[i - 1] + (in[i] % 64 == 0 || in[i - 1] % 7 == in[i] % 5);
    return keys;
}

static bool reduce_by_key(const ints &in)
{
    ints host_keys = keys_of(in), expected_keys, expected_sums;
    device_ints keys(host_keys), values(in), to_keys(in.size()), to_sums(in.size());
    auto end = thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), to_keys.begin(),
                                     to_sums.begin());
    for (size_t i = 0; i < in.size(); i++) {
        if (i == 0 || host_keys[i] != host_keys[i - 1]) {
            expected_keys.push_back(host_keys[i]);
            expected_sums.push_back(0);
        }
        expected_sums.back() += in[i];
    }
    return (size_t)(end.first - to_keys.begin()) == expected_keys.size() &&
           taken(to_keys, expected_keys.size()) == expected_keys &&
           taken(to_sums, expected_sums.size()) == expected_sums;
}

static bool copy_if(const ints &in)
{
    device_ints values(in), to(in.size());
    ints expected;
    auto end = thrust::copy_if(values.begin(), values.end(), to.begin(), is_odd());
    std::copy_if(in.begin(), in.end(), std::back_inserter(expected), is_odd());
    return (size_t)(end - to.begin()) == expected.size() && taken(to, expected.size()) == expected;
}

static bool sort(const ints &in)
{
    device_ints values(in);
    ints expected(in);
    thrust::sort(values.begin(), values.end());
    std::sort(expected.begin(), expected.end());
    return taken(values, in.size()) == expected;
}

static bool unique(const ints &in)
{
    ints expected = keys_of(in);
    device_ints values(expected);
    auto end = thrust::unique(values.begin(), values.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    return (size_t)(end - values.begin()) == expected.size() &&
           taken(values, expected.size()) == expected;
}

static bool partition(const ints &in)
{
    device_ints values(in);
    ints expected(in);
    auto end = thrust::stable_partition(values.begin(), values.end(), is_odd());
    auto middle = std::stable_partition(expected.begin(), expected.end(), is_odd());
    return end - values.begin() == middle - expected.begin() &&
           taken(values, in.size()) == expected;
}

static bool histogram(const ints &in)
{
    const int bins = 50, high = 1000;
    device_ints values(in), counts(bins);
    ints expected(bins);
    const int *from = thrust::raw_pointer_cast(values.data());
    int *to = thrust::raw_pointer_cast(counts.data());
    size_t size = 0;
    MUST(cub::DeviceHistogram::HistogramEven(nullptr, size, from, to, bins + 1, 0, high,
                                             (int)in.size()));
    thrust::device_vector<char> room(size);
    MUST(cub::DeviceHistogram::HistogramEven(thrust::raw_pointer_cast(room.data()), size, from, to,
                                             bins + 1, 0, high, (int)in.size()));
    for (int value : in)
        expected[value / (high / bins)]++;
    return taken(counts, bins) == expected;
}

static ints random_numbers(uint32_t &state)
{
    size_t size = (next_random(state) << 8 ^ next_random(state)) % LARGEST + 1;
    ints numbers(size);
    for (int &number : numbers)
        number = (int)(next_random(state) % 1000);
    return numbers;
}

static const std::pair<const char *, bool (*)(const ints &)> algorithms[] = {
    {"scan", scan},     {"reduce_by_key", reduce_by_key}, {"copy_if", copy_if},     {"sort", sort},
    {"unique", unique}, {"partition", partition},         {"histogram", histogram},
};

// Whether all of so many rounds were right, of all algorithms or of the one that is named.
static bool repeat_algorithms(int rounds, const char *name)
{
    int failed = 0;
    for (auto &algorithm : algorithms) {
        if (name && strcmp(name, algorithm.first) != 0)
            continue;
        uint32_t state = 1;
        int wrong = 0;
        for (int round = 0; round < rounds; round++)
            wrong += !algorithm.second(random_numbers(state));
        printf("%s: %d of %d wrong\n", algorithm.first, wrong, rounds);
        fflush(stdout);
        failed += wrong;
    }
    return !failed;
}

} // namespace repeated

#endif
