// SPDX-License-Identifier: Apache-2.0
// Arrays with mipmaps: their levels as arrays, by copies and by surfaces, and textures that choose
// a level, or mix two, by number or by gradients. Each level is of one value, so what is found
// tells the level that was read.
#include <algorithm>
#include <cmath>

#include "check.cuh"

static const int LEVELS = 5;
// What lies in level l; a mix of two levels is weighed with 8 bits of fraction.
static const float STEP = 100;
static const float TOLERANCE = STEP * 2 / 256;

static float value_of(int level)
{
    return STEP * (level + 1);
}

struct Whole {
    cudaMipmappedArray_t array;
    cudaExtent extent;
    unsigned flags;
};

static cudaArray_t level_of(const Whole &whole, int level)
{
    cudaArray_t array;

    MUST(cudaGetMipmappedArrayLevel(&array, whole.array, level));
    return array;
}

static void fill_level(cudaArray_t array, float value)
{
    cudaChannelFormatDesc channels;
    cudaExtent extent;
    unsigned flags;
    cudaMemcpy3DParms copy = {};

    MUST(cudaArrayGetInfo(&channels, &extent, &flags, array));
    extent.height = extent.height ? extent.height : 1;
    extent.depth = extent.depth ? extent.depth : 1;
    std::vector<float> values(extent.width * extent.height * extent.depth, value);
    copy.srcPtr = make_cudaPitchedPtr(values.data(), extent.width * 4, extent.width, extent.height);
    copy.dstArray = array;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
}

static Whole make_whole(cudaExtent extent, unsigned flags)
{
    auto channels = cudaCreateChannelDesc<float>();
    Whole whole = {NULL, extent, flags};

    MUST(cudaMallocMipmappedArray(&whole.array, &channels, extent, LEVELS, flags));
    for (int level = 0; level < LEVELS; level++)
        fill_level(level_of(whole, level), value_of(level));
    return whole;
}

static cudaTextureDesc description(cudaTextureFilterMode between_levels)
{
    cudaTextureDesc description = {};

    description.normalizedCoords = 1;
    description.filterMode = cudaFilterModeLinear;
    description.mipmapFilterMode = between_levels;
    description.maxMipmapLevelClamp = LEVELS - 1;
    for (auto &mode : description.addressMode)
        mode = cudaAddressModeClamp;
    return description;
}

static cudaTextureObject_t texture_on(const Whole &whole, const cudaTextureDesc &description)
{
    cudaResourceDesc resource = {}, same;
    cudaTextureObject_t texture;

    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = whole.array;
    MUST(cudaCreateTextureObject(&texture, &resource, &description, NULL));
    MUST(cudaGetTextureObjectResourceDesc(&same, texture));
    IS_TRUE(same.resType == resource.resType && same.res.mipmap.mipmap == whole.array);
    return texture;
}

// ---- What a level is ----

static void levels()
{
    const Whole whole = make_whole(make_cudaExtent(48, 20, 0), 0);
    cudaArray_t again;

    for (int level = 0; level < LEVELS; level++) {
        cudaArray_t array = level_of(whole, level);
        cudaChannelFormatDesc channels;
        cudaExtent extent;
        unsigned flags;
        MUST(cudaArrayGetInfo(&channels, &extent, &flags, array));
        IS_TRUE(extent.width == (size_t)std::max(48 >> level, 1));
        IS_TRUE(extent.height == (size_t)std::max(20 >> level, 1) && extent.depth == 0);
        IS_TRUE(channels.x == 32 && channels.f == cudaChannelFormatKindFloat);
        std::vector<float> values(extent.width * extent.height);
        MUST(cudaMemcpy2DFromArray(values.data(), extent.width * 4, array, 0, 0, extent.width * 4,
                                   extent.height, cudaMemcpyDeviceToHost));
        bool same = true;
        for (float value : values)
            same &= value == value_of(level);
        IS_TRUE(same);
    }
    EXPECT(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&again, whole.array, LEVELS));
    cudaGetLastError();
    MUST(cudaFreeMipmappedArray(whole.array));
}

// ---- Levels by number ----

enum Geometry { LINE, PLANE, BOX, LINES, PLANES, CUBE, CUBES };

__global__ void look(int geometry, cudaTextureObject_t t, float *out, float first, float step)
{
    const float level = first + threadIdx.x * step;
    float found;

    switch (geometry) {
    case LINE:
        found = tex1DLod<float>(t, .4f, level);
        break;
    case PLANE:
        found = tex2DLod<float>(t, .4f, .6f, level);
        break;
    case BOX:
        found = tex3DLod<float>(t, .4f, .6f, .3f, level);
        break;
    case LINES:
        found = tex1DLayeredLod<float>(t, .4f, 1, level);
        break;
    case PLANES:
        found = tex2DLayeredLod<float>(t, .4f, .6f, 1, level);
        break;
    case CUBE:
        found = texCubemapLod<float>(t, .1f, 1.f, .2f, level);
        break;
    default:
        found = texCubemapLayeredLod<float>(t, .1f, 1.f, .2f, 1, level);
    }
    out[threadIdx.x] = found;
}

// Levels -1 to LEVELS in sixteenths, but for those where the nearest is not clear.
static const int STEPS = (LEVELS + 1) * 16;

static float wanted(const cudaTextureDesc &d, float level)
{
    level += d.mipmapLevelBias;
    level = std::min(std::max(level, d.minMipmapLevelClamp), d.maxMipmapLevelClamp);
    level = std::min(std::max(level, 0.f), LEVELS - 1.f);
    if (d.mipmapFilterMode == cudaFilterModePoint)
        level = std::floor(level + .5f);
    return STEP * (level + 1);
}

static void check_levels(int geometry, const Whole &whole, const cudaTextureDesc &d)
{
    cudaTextureObject_t texture = texture_on(whole, d);
    float *out;

    MUST(cudaMalloc(&out, STEPS * sizeof(float)));
    look<<<1, STEPS>>>(geometry, texture, out, -1, 1 / 16.f);
    auto found = take(out, STEPS);
    for (int i = 0; i < STEPS; i++) {
        if (d.mipmapFilterMode == cudaFilterModePoint && i % 16 == 8)
            continue;
        IS_TRUE(std::fabs(found[i] - wanted(d, -1 + i / 16.f)) <= TOLERANCE);
    }
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(out));
}

static void check_geometry(int geometry, cudaExtent extent, unsigned flags)
{
    const Whole whole = make_whole(extent, flags);

    check_levels(geometry, whole, description(cudaFilterModePoint));
    check_levels(geometry, whole, description(cudaFilterModeLinear));
    MUST(cudaFreeMipmappedArray(whole.array));
}

static void geometries()
{
    check_geometry(LINE, make_cudaExtent(64, 0, 0), 0);
    check_geometry(PLANE, make_cudaExtent(48, 20, 0), 0);
    check_geometry(BOX, make_cudaExtent(16, 20, 24), 0);
    check_geometry(LINES, make_cudaExtent(64, 0, 3), cudaArrayLayered);
    check_geometry(PLANES, make_cudaExtent(32, 17, 3), cudaArrayLayered);
    check_geometry(CUBE, make_cudaExtent(32, 32, 6), cudaArrayCubemap);
    check_geometry(CUBES, make_cudaExtent(32, 32, 12), cudaArrayCubemap | cudaArrayLayered);
}

static void bias_and_clamps()
{
    const Whole whole = make_whole(make_cudaExtent(48, 20, 0), 0);
    cudaTextureDesc d = description(cudaFilterModeLinear);

    d.mipmapLevelBias = 1.25f;
    check_levels(PLANE, whole, d);
    d.mipmapLevelBias = -.5f;
    check_levels(PLANE, whole, d);
    d.minMipmapLevelClamp = 1;
    d.maxMipmapLevelClamp = 2.5f;
    check_levels(PLANE, whole, d);
    d.mipmapLevelBias = 0;
    d.maxMipmapLevelClamp = d.minMipmapLevelClamp = 2;
    check_levels(PLANE, whole, d);
    MUST(cudaFreeMipmappedArray(whole.array));
}

// ---- Levels by gradients ----

// Steps of `texels` elements of level 0 between neighbors: level log2(texels).
__global__ void slide(cudaTextureObject_t t, float *out, float w, float h, float texels)
{
    const float2 across = make_float2(texels / w, 0), down = make_float2(0, texels / h);

    out[0] = tex2DGrad<float>(t, .4f, .6f, across, down);
    out[1] = tex2DGrad<float>(t, .4f, .6f, make_float2(0, texels / h), make_float2(texels / w, 0));
}

static void gradients()
{
    const Whole whole = make_whole(make_cudaExtent(64, 32, 0), 0);
    cudaTextureObject_t texture = texture_on(whole, description(cudaFilterModePoint));
    float *out;

    MUST(cudaMalloc(&out, 2 * sizeof(float)));
    for (int level = 0; level < LEVELS; level++) {
        slide<<<1, 1>>>(texture, out, 64, 32, 1.1f * (1 << level));
        auto found = take(out, 2);
        IS_TRUE(found[0] == value_of(level) && found[1] == value_of(level));
    }
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(out));
    MUST(cudaFreeMipmappedArray(whole.array));
}

// ---- Made on the GPU ----

// Each element of a level is the mean of four of the one before it.
__global__ void halve(cudaTextureObject_t before, cudaSurfaceObject_t after, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

    if (x < width && y < height)
        surf2Dwrite(tex2D<float>(before, 2 * x + 1.f, 2 * y + 1.f), after, x * 4, y);
}

static void halve_level(const Whole &whole, int level, int size)
{
    cudaResourceDesc resource = {};
    cudaTextureDesc d = {};
    cudaTextureObject_t before;
    cudaSurfaceObject_t after;

    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = level_of(whole, level - 1);
    d.filterMode = cudaFilterModeLinear;
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
    MUST(cudaCreateTextureObject(&before, &resource, &d, NULL));
    resource.res.array.array = level_of(whole, level);
    MUST(cudaCreateSurfaceObject(&after, &resource));
    halve<<<dim3((size + 31) / 32, size), 32>>>(before, after, size, size);
    MUST(cudaDeviceSynchronize());
    MUST(cudaDestroyTextureObject(before));
    MUST(cudaDestroySurfaceObject(after));
}

// Numbers that stay whole down to the last level.
static void pyramid()
{
    const int size = 1 << (LEVELS - 1);
    const Whole whole = make_whole(make_cudaExtent(size, size, 0), cudaArraySurfaceLoadStore);
    std::vector<float> values(size * size), last(1);
    float sum = 0;

    for (int i = 0; i < size * size; i++)
        sum += values[i] = (float)(i * 37 % 64 * size * size);
    MUST(cudaMemcpy2DToArray(level_of(whole, 0), 0, 0, values.data(), size * 4, size * 4, size,
                             cudaMemcpyHostToDevice));
    for (int level = 1; level < LEVELS; level++)
        halve_level(whole, level, size >> level);
    MUST(cudaMemcpy2DFromArray(last.data(), 4, level_of(whole, LEVELS - 1), 0, 0, 4, 1,
                               cudaMemcpyDeviceToHost));
    IS_TRUE(last[0] == sum / (size * size));
    MUST(cudaFreeMipmappedArray(whole.array));
}

// ---- Views ----

__global__ void look_bits(cudaTextureObject_t t, unsigned *out, float level)
{
    out[0] = tex2DLod<unsigned>(t, .5f, .5f, level);
}

// Two levels only, as the bits that their floats are.
static void views()
{
    const Whole whole = make_whole(make_cudaExtent(64, 32, 0), 0);
    cudaTextureDesc d = description(cudaFilterModePoint);
    cudaResourceDesc resource = {};
    cudaResourceViewDesc view = {}, same;
    cudaTextureObject_t texture;
    unsigned *out;

    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = whole.array;
    view.format = cudaResViewFormatUnsignedInt1;
    view.width = 64;
    view.height = 32;
    view.firstMipmapLevel = 1;
    view.lastMipmapLevel = 2;
    d.filterMode = cudaFilterModePoint;
    MUST(cudaCreateTextureObject(&texture, &resource, &d, &view));
    MUST(cudaGetTextureObjectResourceViewDesc(&same, texture));
    IS_TRUE(same.format == view.format && same.lastMipmapLevel == 2);
    MUST(cudaMalloc(&out, sizeof(unsigned)));
    for (int level = 0; level < 4; level++) {
        const float value = value_of(std::min(level + 1, 2));
        unsigned bits;
        look_bits<<<1, 1>>>(texture, out, level);
        memcpy(&bits, &value, sizeof(bits));
        IS_TRUE(take(out, 1)[0] == bits);
    }
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(out));
    MUST(cudaFreeMipmappedArray(whole.array));
}

int main()
{
    RUN(levels);
    RUN(geometries);
    RUN(bias_and_clamps);
    RUN(gradients);
    RUN(pyramid);
    RUN(views);
    return check_close();
}
