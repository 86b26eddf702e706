// SPDX-License-Identifier: Apache-2.0
// How textures read: every shape, address mode and filter against a reference in double, formats
// that become floats, borders, gathering, questions. A GPU weighs with 8 bits of fraction, so each
// dimension may be off by one part in 256 of the difference between two elements.
#include <algorithm>
#include <cmath>

#include <cuda_fp16.h>

#include "textures.cuh"

static const int W = 13, H = 9, D = 6;
static const float BORDER = 40;
static const int SAMPLES = 512;

enum Geometry { LINE, PLANE, BOX, LINES, PLANES };

static int dimensions_of(int geometry)
{
    return geometry == BOX ? 3 : geometry == PLANE || geometry == PLANES ? 2 : 1;
}

static bool is_layered(int geometry)
{
    return geometry == LINES || geometry == PLANES;
}

// ---- Arrays ----

static cudaExtent extent_of(int geometry)
{
    const bool is_line = geometry == LINE || geometry == LINES;

    return make_cudaExtent(W, is_line ? 0 : H, geometry == BOX || is_layered(geometry) ? D : 0);
}

template <typename T>
static cudaArray_t make_array(int geometry, const std::vector<T> &values,
                              cudaChannelFormatDesc channels, unsigned flags = 0)
{
    const cudaExtent extent = extent_of(geometry);
    cudaMemcpy3DParms copy = {};
    cudaArray_t array;

    MUST(cudaMalloc3DArray(&array, &channels, extent,
                           flags | (is_layered(geometry) ? cudaArrayLayered : 0)));
    copy.extent =
        make_cudaExtent(W, std::max<size_t>(extent.height, 1), std::max<size_t>(extent.depth, 1));
    copy.srcPtr = make_cudaPitchedPtr((void *)values.data(), W * sizeof(T), W, copy.extent.height);
    copy.dstArray = array;
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
    return array;
}

static std::vector<float> numbers()
{
    std::vector<float> values(W * H * D);

    for (int i = 0; i < W * H * D; i++)
        values[i] = (float)(i * 37 % 64);
    return values;
}

// ---- Shapes, modes and filters ----

__global__ void look(int geometry, cudaTextureObject_t t, const float4 *at, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 p = at[i];

    switch (geometry) {
    case LINE:
        out[i] = tex1D<float>(t, p.x);
        break;
    case PLANE:
        out[i] = tex2D<float>(t, p.x, p.y);
        break;
    case BOX:
        out[i] = tex3D<float>(t, p.x, p.y, p.z);
        break;
    case LINES:
        out[i] = tex1DLayered<float>(t, p.x, (int)p.w);
        break;
    default:
        out[i] = tex2DLayered<float>(t, p.x, p.y, (int)p.w);
    }
}

// The number of an element along one dimension, or -1 for the border.
static int wrap(int i, int size, cudaTextureAddressMode mode)
{
    switch (mode) {
    case cudaAddressModeWrap:
        return (i % size + size) % size;
    case cudaAddressModeMirror:
        i = (i % (2 * size) + 2 * size) % (2 * size);
        return i < size ? i : 2 * size - 1 - i;
    case cudaAddressModeClamp:
        return std::min(std::max(i, 0), size - 1);
    default:
        return i < 0 || i >= size ? -1 : i;
    }
}

struct Reference {
    int geometry;
    cudaTextureDesc description;
    std::vector<float> values;

    double element(const int at[3]) const
    {
        if (at[0] < 0 || at[1] < 0 || at[2] < 0)
            return BORDER;
        const int height = geometry == LINE || geometry == LINES ? 1 : H;
        return values[(at[2] * height + at[1]) * W + at[0]];
    }

    double sample(const float4 &p) const
    {
        const int size[3] = {W, H, D}, dimensions = dimensions_of(geometry);
        const float at[3] = {p.x, p.y, p.z};
        int first[3] = {0, 0, is_layered(geometry) ? (int)p.w : 0};
        double weight[3] = {0}, sum = 0;
        const bool is_linear = description.filterMode == cudaFilterModeLinear;

        for (int i = 0; i < dimensions; i++) {
            double x = description.normalizedCoords ? (double)at[i] * size[i] : at[i];
            x -= is_linear ? .5 : 0;
            first[i] = (int)std::floor(x);
            weight[i] = is_linear ? x - std::floor(x) : 0;
        }
        for (int corner = 0; corner < 1 << dimensions; corner++) {
            int where[3] = {first[0], first[1], first[2]};
            double part = 1;
            for (int i = 0; i < dimensions; i++) {
                const int second = corner >> i & 1;
                where[i] = wrap(first[i] + second, size[i], description.addressMode[i]);
                part *= second ? weight[i] : 1 - weight[i];
            }
            sum += part * (part == 0 ? 0 : element(where));
        }
        return sum;
    }
};

// From one and a half textures before to as many behind, and never near where elements meet.
static std::vector<float4> places(bool normalized)
{
    std::vector<float4> places(SAMPLES);
    const int size[3] = {W, H, D};
    uint32_t state = 5;

    for (auto &place : places) {
        float at[3];
        for (int i = 0; i < 3; i++) {
            const int element = (int)(next_random(state) % (4 * size[i])) - 3 * size[i] / 2;
            at[i] = element + (next_random(state) % 15 + .5f) / 16;
            at[i] /= normalized ? size[i] : 1;
        }
        place = make_float4(at[0], at[1], at[2], next_random(state) % D);
    }
    return places;
}

static void check_samples(const Reference &reference, cudaTextureObject_t texture)
{
    const auto at = places(reference.description.normalizedCoords);
    const double tolerance = dimensions_of(reference.geometry) * 64.0 / 256;
    float4 *there = make(at);
    float *out;
    int wrong = 0;

    MUST(cudaMalloc(&out, SAMPLES * sizeof(float)));
    look<<<SAMPLES / 64, 64>>>(reference.geometry, texture, there, out);
    auto found = take(out, SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        const double wanted = reference.sample(at[i]);
        const bool is_point = reference.description.filterMode == cudaFilterModePoint;
        wrong += !(std::fabs(found[i] - wanted) <= (is_point ? 0 : tolerance));
    }
    if (wrong)
        printf("geometry %d, mode %d, filter %d, normalized %d: %d are wrong\n", reference.geometry,
               reference.description.addressMode[0], reference.description.filterMode,
               reference.description.normalizedCoords, wrong);
    IS_TRUE(wrong == 0);
    MUST(cudaFree(there));
    MUST(cudaFree(out));
}

static void check_mode(int geometry, cudaArray_t array, cudaTextureAddressMode mode,
                       cudaTextureFilterMode filter, bool normalized)
{
    Reference reference = {geometry, {}, numbers()};
    cudaTextureDesc &d = reference.description;
    cudaTextureObject_t texture;

    // What repeats has to be normalized.
    if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror))
        return;
    // An H200 takes the border of a second direction into account where a line has none.
    for (int i = 0; i < dimensions_of(geometry); i++)
        d.addressMode[i] = mode;
    d.filterMode = filter;
    d.normalizedCoords = normalized;
    std::fill(d.borderColor, d.borderColor + 4, BORDER);
    texture = texture_on(array, d);
    check_samples(reference, texture);
    MUST(cudaDestroyTextureObject(texture));
}

static void shapes()
{
    for (int geometry = LINE; geometry <= PLANES; geometry++) {
        cudaArray_t array = make_array(geometry, numbers(), cudaCreateChannelDesc<float>());
        for (int mode = cudaAddressModeWrap; mode <= cudaAddressModeBorder; mode++)
            for (int how = 0; how < 4; how++)
                check_mode(geometry, array, (cudaTextureAddressMode)mode,
                           how & 1 ? cudaFilterModeLinear : cudaFilterModePoint, how & 2);
        MUST(cudaFreeArray(array));
    }
}

// Another mode in each direction.
static void mixed_modes()
{
    Reference reference = {BOX, {}, numbers()};
    cudaTextureDesc &d = reference.description;
    cudaArray_t array = make_array(BOX, numbers(), cudaCreateChannelDesc<float>());
    cudaTextureObject_t texture;

    d.addressMode[0] = cudaAddressModeMirror;
    d.addressMode[1] = cudaAddressModeBorder;
    d.addressMode[2] = cudaAddressModeWrap;
    d.filterMode = cudaFilterModeLinear;
    d.normalizedCoords = 1;
    std::fill(d.borderColor, d.borderColor + 4, BORDER);
    texture = texture_on(array, d);
    check_samples(reference, texture);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeArray(array));
}

// ---- Formats ----

__global__ void look_at_four(cudaTextureObject_t t, float4 *out)
{
    out[threadIdx.x] = tex1D<float4>(t, threadIdx.x + .5f);
}

__global__ void look_at_half(cudaTextureObject_t t, float4 *out)
{
    out[threadIdx.x] = make_float4(tex1D<float>(t, threadIdx.x + .5f), 0, 0, 0);
}

static std::vector<float4> read_line(cudaArray_t array, cudaTextureReadMode mode, bool srgb,
                                     void (*kernel)(cudaTextureObject_t, float4 *))
{
    cudaTextureDesc d = {};
    cudaTextureObject_t texture;
    float4 *out;

    d.readMode = mode;
    d.sRGB = srgb;
    texture = texture_on(array, d);
    MUST(cudaMalloc(&out, W * sizeof(float4)));
    kernel<<<1, W>>>(texture, out);
    auto found = take(out, W);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(out));
    return found;
}

template <typename T, typename Channel>
static void check_format(double most, bool srgb, double tolerance)
{
    std::vector<T> values(W * H * D);
    uint32_t state = 11;

    for (auto &value : values) {
        Channel *channel = (Channel *)&value;
        for (int i = 0; i < 4; i++)
            channel[i] = (Channel)next_random(state);
    }
    cudaArray_t array = make_array(LINE, values, cudaCreateChannelDesc<T>());
    auto found = read_line(array, cudaReadModeNormalizedFloat, srgb, look_at_four);
    for (int i = 0; i < W; i++) {
        for (int k = 0; k < 4; k++) {
            double wanted = std::max(((Channel *)&values[i])[k] / most, -1.0);
            if (srgb && k < 3)
                wanted = wanted <= .04045 ? wanted / 12.92 : std::pow((wanted + .055) / 1.055, 2.4);
            IS_TRUE(std::fabs(((float *)&found[i])[k] - wanted) <= tolerance);
        }
    }
    MUST(cudaFreeArray(array));
}

static void formats()
{
    check_format<uchar4, unsigned char>(255, false, 1e-6);
    check_format<char4, signed char>(127, false, 1e-6);
    check_format<ushort4, unsigned short>(65535, false, 1e-6);
    check_format<short4, short>(32767, false, 1e-6);
    check_format<uchar4, unsigned char>(255, true, 2e-3);
}

static void halves()
{
    std::vector<__half> values(W * H * D);

    for (int i = 0; i < W; i++)
        values[i] = __float2half(i * .375f - 2);
    cudaArray_t array = make_array(LINE, values, cudaCreateChannelDescHalf());
    auto found = read_line(array, cudaReadModeElementType, false, look_at_half);
    for (int i = 0; i < W; i++)
        IS_TRUE(found[i].x == i * .375f - 2);
    MUST(cudaFreeArray(array));
}

// ---- Gathering ----

__global__ void gather(cudaTextureObject_t t, float4 *out, int component)
{
    const float x = threadIdx.x + 1.f, y = blockIdx.x + 1.f;

    out[blockIdx.x * blockDim.x + threadIdx.x] = tex2Dgather<float4>(t, x, y, component);
}

static void gathering()
{
    std::vector<float2> values(W * H * D);

    for (int i = 0; i < W * H; i++)
        values[i] = make_float2(i, -i);
    cudaArray_t array =
        make_array(PLANE, values, cudaCreateChannelDesc<float2>(), cudaArrayTextureGather);
    cudaTextureDesc d = {};
    cudaTextureObject_t texture = texture_on(array, d);
    float4 *out;

    MUST(cudaMalloc(&out, W * H * sizeof(float4)));
    for (int component = 0; component < 2; component++) {
        gather<<<H - 1, W - 1>>>(texture, out, component);
        auto found = take(out, (W - 1) * (H - 1));
        for (int i = 0; i < (W - 1) * (H - 1); i++) {
            const int first = i / (W - 1) * W + i % (W - 1), sign = component ? -1 : 1;
            const float4 f = found[i];
            IS_TRUE(f.x == sign * (first + W) && f.y == sign * (first + W + 1));
            IS_TRUE(f.z == sign * (first + 1) && f.w == sign * first);
        }
    }
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
}

// ---- Memory ----

__global__ void look_at_rows(cudaTextureObject_t t, const float4 *at, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    out[i] = tex2D<float>(t, at[i].x, at[i].y);
}

// Rows of memory are filtered as a plane is.
static void rows()
{
    Reference reference = {PLANE, {}, numbers()};
    cudaResourceDesc resource = {};
    cudaTextureObject_t texture;
    size_t pitch;
    float *memory;

    MUST(cudaMallocPitch(&memory, &pitch, W * 4, H));
    MUST(cudaMemcpy2D(memory, pitch, reference.values.data(), W * 4, W * 4, H,
                      cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = W;
    resource.res.pitch2D.height = H;
    resource.res.pitch2D.pitchInBytes = pitch;
    reference.description.filterMode = cudaFilterModeLinear;
    reference.description.addressMode[0] = cudaAddressModeClamp;
    reference.description.addressMode[1] = cudaAddressModeClamp;
    MUST(cudaCreateTextureObject(&texture, &resource, &reference.description, NULL));
    check_samples(reference, texture);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(memory));
}

// ---- Questions ----

__global__ void ask(cudaTextureObject_t t, int *out)
{
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(t));
    asm volatile("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(t));
    asm volatile("txq.depth.b32 %0, [%1];" : "=r"(out[2]) : "l"(t));
}

static void questions()
{
    cudaArray_t array = make_array(BOX, numbers(), cudaCreateChannelDesc<float>());
    cudaTextureDesc d = {};
    cudaTextureObject_t texture = texture_on(array, d);
    int *out;

    MUST(cudaMalloc(&out, 3 * sizeof(int)));
    ask<<<1, 1>>>(texture, out);
    auto found = take(out, 3);
    IS_TRUE(found[0] == W && found[1] == H && found[2] == D);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
}

int main()
{
    RUN(shapes);
    RUN(mixed_modes);
    RUN(formats);
    RUN(halves);
    RUN(gathering);
    RUN(rows);
    RUN(questions);
    return check_close();
}
