/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_call.h. */
#include "decode_call.h"

#include <string.h>

#include "control_flow.h"
#include "device_runtime.h"
#include "frames.h"
#include "operand.h"
#include "system_calls.h"

struct call {
    const struct ptx_operand *returns;
    const struct ptx_operand *callee;
    const struct ptx_operand *arguments;
    const struct ptx_operand *prototype;
};

static struct call take_apart(struct builder *builder)
{
    struct call call = {0};
    for (unsigned i = 0; i < operand_count(builder); i++) {
        const struct ptx_operand *one = operand_at(builder, i);
        if (one->kind == PTX_OPERAND_LIST && !call.callee)
            call.returns = one;
        else if (one->kind == PTX_OPERAND_LIST)
            call.arguments = one;
        else if (!call.callee)
            call.callee = one;
        else
            call.prototype = one;
    }
    return call;
}

static uint32_t count_of(const struct ptx_operand *list)
{
    return list ? list->count : 0;
}

/* The place in our frame of the i-th of a list of .param variables. */
static bool actual_offset(struct builder *builder, const struct ptx_operand *list, unsigned i,
                          uint32_t *ret_offset)
{
    const struct ptx_operand *one = &list->elements[i];
    bool is_param = one->kind == PTX_OPERAND_SYMBOL && one->symbol->kind == PTX_VARIABLE &&
                    one->symbol->variable.space == PTX_PARAM;
    if (!is_param || !operand_frame_offset(builder, one->symbol, ret_offset)) {
        decode_malformed(builder, "arguments and results must be .param variables of the caller");
        return false;
    }
    return true;
}

static void emit_copy(struct builder *builder, uint32_t to, uint32_t from, uint64_t size)
{
    struct insn *insn = builder_emit(builder, run_copy_local);
    insn->d = to;
    insn->a = from;
    insn->b = (uint32_t)size;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Between our .param variables and those of the callee, whose frame begins behind ours. */
static void copy_values(struct builder *builder, const struct ptx_operand *list,
                        struct ptx_symbol *const *formals, uint32_t count, uint32_t start,
                        bool to_callee)
{
    uint32_t frame = layout_of(builder, builder->function)->frame;
    builder->program->calls = true;
    uint64_t at = start;
    for (uint32_t i = 0; i < count && !builder->failed; i++) {
        uint32_t actual;
        const struct ptx_variable *formal = &formals[i]->variable;
        at = (at + formal->align - 1) & ~(uint64_t)(formal->align - 1);
        if (!actual_offset(builder, list, i, &actual))
            return;
        uint64_t size = lesser(formal->size, list->elements[i].symbol->variable.size);
        uint32_t place = frame + (uint32_t)at;
        emit_copy(builder, to_callee ? place : actual, to_callee ? actual : place, size);
        at += formal->size;
    }
}

static void emit_window(struct builder *builder, handler_fn run)
{
    const struct layout *layout = layout_of(builder, builder->function);
    struct insn *insn = builder_emit(builder, run);
    insn->d = layout->window;
    insn->b = layout->wide_count;
    insn->c = layout->narrow_count;
    insn->p = layout->predicate_count;
    insn->a = layout->save;
}

/* The jump itself; what a call may come back to is saved if need be. */
static void emit_jump(struct builder *builder, const struct ptx_function *callee, uint32_t pointer)
{
    uint32_t frame = layout_of(builder, builder->function)->frame;
    if (builder->program->recursive)
        emit_window(builder, run_save_registers);
    struct insn *insn = builder_emit(builder, callee ? run_call : run_call_pointer);
    insn->b = frame;
    insn->c = callee ? layout_of(builder, callee)->frame : 0;
    insn->a = pointer;
    if (callee)
        builder_add_fixup(builder, NULL, callee);
    if (builder->program->recursive)
        emit_window(builder, run_restore_registers);
}

static void call_function(struct builder *builder, const struct call *call,
                          const struct ptx_function *signature, const struct ptx_function *callee,
                          uint32_t pointer)
{
    if (count_of(call->arguments) < signature->param_count ||
        count_of(call->returns) < signature->return_count) {
        decode_malformed(builder, "the call does not fit the function");
        return;
    }
    uint32_t params = layout_params(signature->returns, signature->return_count, 0, NULL);
    copy_values(builder, call->arguments, signature->params, signature->param_count, params, true);
    emit_jump(builder, callee, pointer);
    copy_values(builder, call->returns, signature->returns, signature->return_count, 0, false);
}

struct builtin {
    const char *name;
    handler_fn run;
    unsigned arguments;
    unsigned returns;
};

static const struct builtin builtins[] = {
    {"vprintf", run_printf, 2, 1},
    {"__assertfail", run_assert_fail, 5, 0},
    {"malloc", run_malloc, 1, 1},
    {"free", run_free, 1, 0},
    {"cudaGraphSetConditional", run_set_conditional, 2, 0},
};

/* The device runtime. Its names begin with the first of these since CUDA 12, with the other in CUDA
 * 11. */
static const char *const runtime_prefixes[] = {"__cudaCDP2", "cuda"};
static const struct builtin runtime[] = {
    {"GetParameterBufferV2", run_get_parameter_buffer, 4, 1},
    {"LaunchDeviceV2", run_launch_device, 2, 1},
    {"LaunchDeviceV2_ptsz", run_launch_device, 2, 1},
    {"StreamCreateWithFlags", run_device_stream_create, 2, 1},
    {"StreamDestroy", run_device_success, 1, 1},
    {"StreamWaitEvent", run_device_success, 3, 1},
    {"StreamWaitEvent_ptsz", run_device_success, 3, 1},
    {"EventCreateWithFlags", run_device_event_create, 2, 1},
    {"EventRecord", run_device_success, 2, 1},
    {"EventRecord_ptsz", run_device_success, 2, 1},
    {"EventRecordWithFlags", run_device_success, 3, 1},
    {"EventRecordWithFlags_ptsz", run_device_success, 3, 1},
    {"EventDestroy", run_device_success, 1, 1},
    {"MemcpyAsync", run_device_memcpy, 5, 1},
    {"MemcpyAsync_ptsz", run_device_memcpy, 5, 1},
    {"MemsetAsync", run_device_memset, 4, 1},
    {"MemsetAsync_ptsz", run_device_memset, 4, 1},
    {"GetErrorName", run_device_get_error_name, 1, 1},
    {"GetErrorString", run_device_get_error_string, 1, 1},
    {"GetLastError", run_device_get_last_error, 0, 1},
    {"PeekAtLastError", run_device_peek_at_last_error, 0, 1},
    {"Malloc", run_device_malloc, 2, 1},
    {"Free", run_device_free, 1, 1},
};

static const struct builtin *find_in(const struct builtin *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, table[i].name) == 0)
            return &table[i];
    }
    return NULL;
}

/* The rest of a name behind the prefix of the device runtime; NULL for any other name. */
static const char *name_in_runtime(const char *name)
{
    for (unsigned i = 0; i < sizeof(runtime_prefixes) / sizeof(runtime_prefixes[0]); i++) {
        size_t length = strlen(runtime_prefixes[i]);
        if (strncmp(name, runtime_prefixes[i], length) == 0)
            return name + length;
    }
    return NULL;
}

static const struct builtin *find_builtin(const char *name)
{
    const char *in_runtime = name_in_runtime(name);
    const struct builtin *found = find_in(builtins, sizeof(builtins) / sizeof(builtins[0]), name);
    if (!found && in_runtime)
        found = find_in(runtime, sizeof(runtime) / sizeof(runtime[0]), in_runtime);
    return found;
}

/* d: where in the frame the result is; a, b, c, p and imm: the arguments in order. */
static void call_builtin(struct builder *builder, const struct call *call,
                         const struct builtin *builtin)
{
    uint32_t offsets[5] = {0}, result = 0;
    if (count_of(call->arguments) < builtin->arguments ||
        count_of(call->returns) < builtin->returns) {
        decode_malformed(builder, "the call does not fit the function");
        return;
    }
    for (unsigned i = 0; i < builtin->arguments; i++) {
        if (!actual_offset(builder, call->arguments, i, &offsets[i]))
            return;
    }
    if (builtin->returns && !actual_offset(builder, call->returns, 0, &result))
        return;
    struct insn *insn = builder_emit(builder, builtin->run);
    insn->d = result;
    insn->a = offsets[0];
    insn->b = offsets[1];
    insn->c = offsets[2];
    insn->p = offsets[3];
    insn->imm = offsets[4];
}

static void refuse_function(struct builder *builder, const char *name)
{
    if (name_in_runtime(name))
        decode_fail(builder, CUDA_ERROR_NOT_SUPPORTED,
                    "%s: the software GPU lacks this function of the device runtime", name);
    else
        decode_fail(builder, CUDA_ERROR_NOT_FOUND, "function %s is declared but not defined", name);
}

static void call_named(struct builder *builder, const struct call *call,
                       const struct ptx_function *callee)
{
    const struct builtin *builtin = callee->has_body ? NULL : find_builtin(callee->name);
    if (callee->is_entry)
        decode_malformed(builder, "a kernel cannot be called");
    else if (builtin)
        call_builtin(builder, call, builtin);
    else if (callee->has_body)
        call_function(builder, call, callee, callee, NO_OPERAND);
    else
        refuse_function(builder, callee->name);
}

void decode_call(struct builder *builder, const struct tokens *tokens)
{
    struct call call = take_apart(builder);
    if (!call.callee) {
        decode_malformed(builder, "a call needs a function");
        return;
    }
    if (call.callee->kind == PTX_OPERAND_SYMBOL && call.callee->symbol->kind == PTX_FUNCTION) {
        call_named(builder, &call, call.callee->symbol->function);
        return;
    }
    const struct ptx_symbol *prototype = call.prototype ? call.prototype->symbol : NULL;
    if (!prototype || prototype->kind != PTX_PROTOTYPE || !prototype->prototype) {
        decode_malformed(builder, "a call through a pointer needs a .callprototype");
        return;
    }
    uint32_t pointer = operand_source(builder, call.callee, PTX_U64);
    call_function(builder, &call, prototype->prototype, NULL, pointer);
}
