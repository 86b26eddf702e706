/* SPDX-License-Identifier: Apache-2.0 */
#include "module_cases.h"

#include <string.h>

#include "server_module.h"

uint32_t case_counter;
unsigned case_writes;

struct module_cache *case_cache(struct fixture *fixture)
{
    return server_module_cache(&fixture->server);
}

CUresult case_try_get(struct fixture *fixture, const char *text, uint64_t option,
                      struct cached **ret_cached)
{
    uint64_t options[2] = {CU_JIT_OPTIMIZATION_LEVEL, option};
    const struct image_request image = {.session = fixture->session,
                                        .device = &fixture->server.devices.device[0],
                                        .image = fixture_image(fixture, text),
                                        .options = options,
                                        .options_size = sizeof(options)};
    char text_log[16];
    struct image_log log = {.text = text_log, .capacity = sizeof(text_log)};
    CUresult result = module_cache_get(case_cache(fixture), &image, ret_cached, &log);

    stored_image_unref(image.image);
    return result;
}

struct cached *case_get(struct fixture *fixture, const char *text)
{
    struct cached *cached = NULL;

    assert_int_equal(case_try_get(fixture, text, 3, &cached), CUDA_SUCCESS);
    return cached;
}

void case_query(struct fixture *fixture, struct cached *cached)
{
    struct exclusive_call call;

    assert_int_equal(cached_query_begin(cached, fixture->session, "a test", &call), CUDA_SUCCESS);
    cached_query_end(cached, fixture->session, CUDA_SUCCESS, &call);
}

const char *case_unload(struct module_cache *cache)
{
    while (module_cache_unload(cache))
        ;
    return fake_trace();
}

static CUresult get_counter(CUdeviceptr *ret_address, size_t *ret_size, CUlibrary library,
                            const char *name)
{
    *ret_address = (uintptr_t)&case_counter;
    *ret_size = sizeof(case_counter);
    return strcmp(name, "counter") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult copy_now(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    case_writes += dst == (uintptr_t)&case_counter;
    memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size);
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream)
{
    return CUDA_SUCCESS;
}

void case_have_a_counter(void)
{
    driver.cuLibraryGetGlobal = get_counter;
    driver.cuMemcpyAsync = copy_now;
    driver.cuStreamSynchronize = synchronize;
    case_counter = 5;
    case_writes = 0;
}
