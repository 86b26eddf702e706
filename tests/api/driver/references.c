/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references, as programs of CUDA 11 and PyCUDA use them. They are names in a
 * module, which the host binds to arrays and to memory.
 */
#include "check.h"

#include <string.h>

#include "cuda_flags.h"

#define SIDE 4

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".global .texref plane;\n.global .texref line;\n.global .surfref canvas;\n"
    ".global .u32 variable;\n"
    ".visible .entry read_plane(.param .u64 out, .param .f32 x, .param .f32 y)\n{\n"
    ".reg .b64 %a;\n.reg .f32 %f<7>;\n"
    "ld.param.u64 %a, [out];\nld.param.f32 %f1, [x];\nld.param.f32 %f2, [y];\n"
    "tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [plane, {%f1, %f2}];\n"
    "st.global.f32 [%a], %f3;\nret;\n}\n"
    ".visible .entry read_line(.param .u64 out, .param .u32 i)\n{\n"
    ".reg .b64 %a;\n.reg .u32 %i, %u<5>;\n"
    "ld.param.u64 %a, [out];\nld.param.u32 %i, [i];\n"
    "tex.1d.v4.u32.s32 {%u1, %u2, %u3, %u4}, [line, {%i}];\n"
    "st.global.u32 [%a], %u1;\nret;\n}\n"
    ".visible .entry draw(.param .u32 x, .param .u32 y, .param .f32 value)\n{\n"
    ".reg .u32 %x, %y, %v;\n"
    "ld.param.u32 %x, [x];\nld.param.u32 %y, [y];\nld.param.u32 %v, [value];\n"
    "sust.b.2d.b32.trap [canvas, {%x, %y}], {%v};\nret;\n}\n";

static CUmodule module;
static CUdeviceptr out;
static CUarray arrays[2];
static CUtexref plane;

/* Its elements count from `first`. */
static CUarray make_array(float first)
{
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = SIDE,
                                                .Height = SIDE,
                                                .Format = CU_AD_FORMAT_FLOAT,
                                                .NumChannels = 1,
                                                .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    float values[SIDE * SIDE];
    CUarray array;
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = values,
                          .srcPitch = SIDE * sizeof(float),
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = SIDE * sizeof(float),
                          .Height = SIDE};

    for (int i = 0; i < SIDE * SIDE; i++)
        values[i] = first + (float)i;
    MUST(cuArray3DCreate_v2(&array, &descriptor));
    copy.dstArray = array;
    MUST(cuMemcpy2D_v2(&copy));
    return array;
}

static float plane_at(float x, float y)
{
    void *parameters[] = {&out, &x, &y};
    float value;

    launch_one(get_kernel(module, "read_plane"), NULL, parameters);
    MUST(cuMemcpyDtoH_v2(&value, out, sizeof(value)));
    return value;
}

static uint32_t line_at(unsigned element)
{
    void *parameters[] = {&out, &element};

    launch_one(get_kernel(module, "read_line"), NULL, parameters);
    return word_at(out);
}

static void has_names(void)
{
    CUdeviceptr address;
    CUsurfref surface;
    CUtexref again;

    EXPECT(CUDA_SUCCESS, cuModuleGetTexRef(&plane, module, "plane"));
    EXPECT(CUDA_SUCCESS, cuModuleGetTexRef(&again, module, "plane"));
    IS_TRUE(plane == again);
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "none"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "canvas"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "variable"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "draw"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetSurfRef(&surface, module, "plane"));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleGetTexRef(NULL, module, "plane"));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(&address, NULL, module, "plane"));
}

static void reads_an_array(void)
{
    CUarray bound;

    EXPECT(CUDA_SUCCESS, cuTexRefSetArray(plane, arrays[0], CU_TRSA_OVERRIDE_FORMAT));
    EXPECT(CUDA_SUCCESS, cuTexRefGetArray(&bound, plane));
    IS_TRUE(bound == arrays[0]);
    IS_TRUE(plane_at(2.5f, 1.5f) == 6);
    EXPECT(CUDA_SUCCESS, cuTexRefSetFilterMode(plane, CU_TR_FILTER_MODE_LINEAR));
    IS_TRUE(plane_at(2.0f, 1.5f) == 5.5f);
    EXPECT(CUDA_SUCCESS, cuTexRefSetFlags(plane, CU_TRSF_NORMALIZED_COORDINATES));
    IS_TRUE(plane_at(0.5f, 0.375f) == 5.5f);
    EXPECT(CUDA_SUCCESS, cuTexRefSetFlags(plane, 0));
    EXPECT(CUDA_SUCCESS, cuTexRefSetFilterMode(plane, CU_TR_FILTER_MODE_POINT));
}

static void has_defaults(void)
{
    CUaddress_mode mode;
    CUarray_format format;
    CUfilter_mode filter;
    CUarray array;
    int channels;

    EXPECT(CUDA_SUCCESS, cuTexRefGetAddressMode(&mode, plane, 2));
    EXPECT(CUDA_SUCCESS, cuTexRefGetFilterMode(&filter, plane));
    EXPECT(CUDA_SUCCESS, cuTexRefGetFormat(&format, &channels, plane));
    IS_TRUE(mode == CU_TR_ADDRESS_MODE_CLAMP && filter == CU_TR_FILTER_MODE_POINT);
    IS_TRUE(format == CU_AD_FORMAT_FLOAT && channels == 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&array, plane));
}

static void has_a_border(void)
{
    float color[4] = {42, 0, 0, 0}, read[4] = {0};
    CUaddress_mode mode;

    for (int i = 0; i < 2; i++)
        EXPECT(CUDA_SUCCESS, cuTexRefSetAddressMode(plane, i, CU_TR_ADDRESS_MODE_BORDER));
    EXPECT(CUDA_SUCCESS, cuTexRefSetBorderColor(plane, color));
    IS_TRUE(plane_at(-3, 0.5f) == 42);
    EXPECT(CUDA_SUCCESS, cuTexRefGetBorderColor(read, plane));
    IS_TRUE(memcmp(color, read, sizeof(read)) == 0);
    EXPECT(CUDA_SUCCESS, cuTexRefGetAddressMode(&mode, plane, 1));
    IS_TRUE(mode == CU_TR_ADDRESS_MODE_BORDER);
    for (int i = 0; i < 2; i++)
        EXPECT(CUDA_SUCCESS, cuTexRefSetAddressMode(plane, i, CU_TR_ADDRESS_MODE_CLAMP));
    IS_TRUE(plane_at(-3, 0.5f) == 0);
}

/* Launches before read the array before, launches behind the new one. */
static void is_bound_anew(void)
{
    CUdeviceptr both = make_words(2, 0);
    CUfunction read = get_kernel(module, "read_plane");
    float x = 2.5f, y = 1.5f, values[2];
    CUdeviceptr second = both + sizeof(float);
    void *first_parameters[] = {&both, &x, &y}, *second_parameters[] = {&second, &x, &y};

    launch_one(read, NULL, first_parameters);
    EXPECT(CUDA_SUCCESS, cuTexRefSetArray(plane, arrays[1], CU_TRSA_OVERRIDE_FORMAT));
    launch_one(read, NULL, second_parameters);
    MUST(cuMemcpyDtoH_v2(values, both, sizeof(values)));
    IS_TRUE(values[0] == 6 && values[1] == 1006);
    MUST(cuMemFree_v2(both));
}

/* As PyCUDA does it: one array behind the other. */
static void outlives_arrays(void)
{
    for (int i = 0; i < 20; i++) {
        CUarray array = make_array((float)(100 * i));

        MUST(cuTexRefSetArray(plane, array, CU_TRSA_OVERRIDE_FORMAT));
        IS_TRUE(plane_at(0.5f, 0.5f) == (float)(100 * i));
        MUST(cuArrayDestroy(array));
    }
    EXPECT(CUDA_SUCCESS, cuTexRefSetArray(plane, arrays[0], CU_TRSA_OVERRIDE_FORMAT));
}

static void reads_memory(void)
{
    CUdeviceptr memory = make_words(1024, 7), bound;
    CUarray_format format;
    CUtexref line;
    int channels;
    size_t offset = 1;

    MUST(cuMemsetD32_v2(memory + 12, 9, 1));
    MUST(cuModuleGetTexRef(&line, module, "line"));
    EXPECT(CUDA_SUCCESS, cuTexRefSetFormat(line, CU_AD_FORMAT_UNSIGNED_INT32, 1));
    EXPECT(CUDA_SUCCESS, cuTexRefSetFlags(line, CU_TRSF_READ_AS_INTEGER));
    EXPECT(CUDA_SUCCESS, cuTexRefSetAddress_v2(&offset, line, memory, 1 << 20));
    IS_TRUE(offset == 0 && line_at(3) == 9 && line_at(4) == 7);
    EXPECT(CUDA_SUCCESS, cuTexRefGetAddress_v2(&bound, line));
    IS_TRUE(bound == memory);
    EXPECT(CUDA_SUCCESS, cuTexRefGetFormat(&format, &channels, line));
    IS_TRUE(format == CU_AD_FORMAT_UNSIGNED_INT32 && channels == 1);
    MUST(cuMemFree_v2(memory));
}

static void reads_rows(void)
{
    const CUDA_ARRAY_DESCRIPTOR rows = {SIDE, SIDE, CU_AD_FORMAT_FLOAT, 1};
    CUdeviceptr memory = make_words(1024, 0);

    MUST(cuMemsetD32_v2(memory + 512 + 8, 0x40400000, 1));
    EXPECT(CUDA_SUCCESS, cuTexRefSetAddress2D_v3(plane, &rows, memory, 512));
    IS_TRUE(plane_at(2.5f, 1.5f) == 3 && plane_at(1.5f, 1.5f) == 0);
    EXPECT(CUDA_SUCCESS, cuTexRefSetArray(plane, arrays[0], CU_TRSA_OVERRIDE_FORMAT));
    MUST(cuMemFree_v2(memory));
}

static void writes_a_surface(void)
{
    unsigned x = 8, y = 1;
    float value = 555;
    void *parameters[] = {&x, &y, &value};
    CUsurfref canvas;
    CUarray bound;

    EXPECT(CUDA_SUCCESS, cuModuleGetSurfRef(&canvas, module, "canvas"));
    EXPECT(CUDA_SUCCESS, cuSurfRefSetArray(canvas, arrays[0], 0));
    EXPECT(CUDA_SUCCESS, cuSurfRefGetArray(&bound, canvas));
    IS_TRUE(bound == arrays[0]);
    launch_one(get_kernel(module, "draw"), NULL, parameters);
    IS_TRUE(plane_at(2.5f, 1.5f) == 555 && plane_at(1.5f, 1.5f) == 5);
}

/* Each module has references of its own, of libraries as well. */
static void belongs_to_a_module(void)
{
    CUmodule other, own = module;
    CUlibrary library;
    CUtexref texture;

    MUST(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetModule(&other, library));
    EXPECT(CUDA_SUCCESS, cuModuleGetTexRef(&texture, other, "plane"));
    IS_TRUE(texture != plane);
    EXPECT(CUDA_SUCCESS, cuTexRefSetArray(texture, arrays[1], CU_TRSA_OVERRIDE_FORMAT));
    IS_TRUE(plane_at(0.5f, 0.5f) == 0);
    module = other;
    IS_TRUE(plane_at(0.5f, 0.5f) == 1000);
    module = own;
    MUST(cuLibraryUnload(library));
    IS_TRUE(plane_at(0.5f, 0.5f) == 0);
}

static void refuses_what_is_wrong(void)
{
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(plane, CU_AD_FORMAT_FLOAT, 3));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetBorderColor(plane, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFlags(plane, 0x100));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(plane, 3, CU_TR_ADDRESS_MODE_WRAP));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress_v2(NULL, plane, out + 20, 256));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetFlags(NULL, 0));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetArray(plane, NULL, CU_TRSA_OVERRIDE_FORMAT));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetArray(plane, arrays[0], 2));
    IS_TRUE(plane_at(0.5f, 0.5f) == 0);
}

int main(void)
{
    check_open();
    MUST(cuModuleLoadData(&module, ptx));
    arrays[0] = make_array(0);
    arrays[1] = make_array(1000);
    out = make_words(4, 0);
    RUN(has_names);
    RUN(has_defaults);
    RUN(reads_an_array);
    RUN(has_a_border);
    RUN(is_bound_anew);
    RUN(outlives_arrays);
    RUN(reads_memory);
    RUN(reads_rows);
    RUN(writes_a_surface);
    RUN(belongs_to_a_module);
    RUN(refuses_what_is_wrong);
    MUST(cuModuleUnload(module));
    return check_close();
}
