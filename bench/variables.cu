// SPDX-License-Identifier: Apache-2.0
// Host and kernel take turns on four __managed__ variables, which share a page. A program of its
// own: with variables in it, the code of client.cu would not be shared by its copies.
//
//   variables SECONDS
//
// prints "ready", waits for a line on standard input, works for SECONDS, and prints the median of
// a turn as one line of JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "bench variables: %s: %s\n", #call, cudaGetErrorString(error_));       \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

namespace {

using clock_type = std::chrono::steady_clock;

__managed__ unsigned first, second, third, fourth;

__global__ void add_kernel()
{
    first++;
    second++;
    third++;
    fourth++;
}

double seconds_since(clock_type::time_point start)
{
    return std::chrono::duration<double>(clock_type::now() - start).count();
}

void take_turn()
{
    first++;
    second++;
    third++;
    fourth++;
    add_kernel<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
}

std::vector<double> turns_for(double limit)
{
    std::vector<double> took;
    auto start = clock_type::now();
    do {
        auto begin = clock_type::now();
        take_turn();
        took.push_back(seconds_since(begin));
    } while (seconds_since(start) < limit);
    return took;
}

double median(std::vector<double> values)
{
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}

} // namespace

int main(int count, char **words)
{
    if (count != 2) {
        fprintf(stderr, "usage: variables SECONDS\n");
        return 2;
    }
    take_turn(); // loads the module before the clock runs
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 2;
    std::vector<double> took = turns_for(atof(words[1]));
    unsigned expected = 2 * ((unsigned)took.size() + 1);
    bool correct = first == expected && second == expected && third == expected &&
                   fourth == expected;
    printf("{\"p50_us\": %.3f, \"correct\": %s}\n", median(took) * 1e6,
           correct ? "true" : "false");
    return correct ? 0 : 1;
}
