/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with marks and ranges of NVTX that profiles itself with CUPTI: their records, and the
 * callbacks for them. Prints what they say, and no time, thread or id.
 */
#include <cupti.h>
#include <generated_nvtx_meta.h>
#include <string.h>
#include <wchar.h>

#include "collect.h"

static unsigned pushes, pops, other_calls;

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    const CUpti_NvtxData *call = data;
    const nvtxRangePushA_params *push = call->functionParams;

    if (domain != CUPTI_CB_DOMAIN_NVTX)
        return;
    if (cbid == CUPTI_CBID_NVTX_nvtxRangePushA && !strcmp(push->message, "outer"))
        pushes += !strcmp(call->functionName, "nvtxRangePushA") &&
                  *(const int *)call->functionReturnValue == 0;
    else if (cbid == CUPTI_CBID_NVTX_nvtxRangePop)
        pops++;
    else
        other_calls++;
}

static nvtxEventAttributes_t attributes_of(nvtxStringHandle_t text)
{
    return (nvtxEventAttributes_t){
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = text,
    };
}

static void set_marks(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t attributes =
        attributes_of(nvtxDomainRegisterStringA(domain, "registered"));
    nvtxRangeId_t first, second;

    nvtxRangePushA("outer");
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxRangePushW(L"inner");
    nvtxMarkA("mark");
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangePop();
    first = nvtxRangeStartA("first");
    second = nvtxDomainRangeStartEx(domain, &attributes);
    nvtxRangeEnd(first);
    nvtxDomainRangeEnd(domain, second);
}

static const char *name_of(const CUpti_ActivityMarker2 *end)
{
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityMarker2 *one = (const void *)records[i];
        if (one->kind == CUPTI_ACTIVITY_KIND_MARKER && one->id == end->id &&
            one->flags == CUPTI_ACTIVITY_FLAG_MARKER_START)
            return one->name;
    }
    return "none";
}

static void print_marker(const CUpti_ActivityMarker2 *marker)
{
    const char *domain = marker->domain ? marker->domain : "default";

    check(marker->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD, "the kind of the object");
    if (marker->flags == CUPTI_ACTIVITY_FLAG_MARKER_END)
        printf("end of %s in %s\n", name_of(marker), domain);
    else
        printf("%s %s in %s\n",
               marker->flags == CUPTI_ACTIVITY_FLAG_MARKER_START ? "start of" : "mark",
               marker->name, domain);
}

int main(void)
{
    CUpti_SubscriberHandle subscriber;
    uint64_t last = 0;

    nvtxRangePushA("before");
    MUST(cuptiSubscribe(&subscriber, on_callback, NULL));
    MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_NVTX));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER));
    nvtxRangePop();
    set_marks();
    MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MARKER));
    MUST(cuptiUnsubscribe(subscriber));
    set_marks();
    flush();
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityMarker2 *marker = (const void *)records[i];
        check(marker->timestamp >= last, "a marker is before the last one");
        last = marker->timestamp;
        print_marker(marker);
    }
    printf("%u pushed, %u popped, %u others\n", pushes, pops, other_calls);
    return 0;
}
