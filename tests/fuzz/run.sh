#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with libFuzzer and sanitizers and runs each for some seconds.
#
#     tests/fuzz/run.sh WORK_DIRECTORY [SECONDS]      (the corpus grows in WORK_DIRECTORY/corpus-*)
#
# What earlier runs found worth keeping is in tests/fuzz/corpus (corpus.py).
set -eu

work=$1
seconds=${2:-10}
root=$(cd "$(dirname "$0")/../.." && pwd)
fuzz=$root/tests/fuzz
mkdir -p "$work"

cat >"$work/probe.c" <<'END'
int LLVMFuzzerTestOneInput(const char *d, long n);
int LLVMFuzzerTestOneInput(const char *d, long n) { return 0; }
END
if ! clang -fsanitize=fuzzer,address,undefined "$work/probe.c" -o "$work/probe" 2>/dev/null; then
    echo "fuzz: skipped, there is no clang with libFuzzer"
    exit 0
fi

# $1 = name of the target; the rest = more sources and flags
build() {
    target=$1
    shift
    clang -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined \
        -fno-sanitize-recover=all -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
        -I"$root/src/base" -I"$root/src/ipc" -I"$root/src/cuda" -I"$root/src/wire" -I"$work" \
        "$fuzz/$target.c" "$@" "$root"/src/ipc/*.c "$root"/src/base/*.c -pthread -o "$work/$target"
}

# $1 = name of the target, $2 = longest input
run() {
    mkdir -p "$work/corpus-$1"
    echo "fuzz: $1 for $seconds seconds"
    "$work/$1" -max_total_time="$seconds" -max_len="$2" -timeout=60 -print_final_stats=1 \
        -artifact_prefix="$work/" "$work/corpus-$1" >"$work/$1.log" 2>&1 || {
        tail -n 40 "$work/$1.log"
        echo "fuzz: $1 FAILED, the input is in $work" >&2
        exit 1
    }
    sed -n 's/^stat::number_of_executed_units: */fuzz: inputs tried: /p' "$work/$1.log"
}

# Runs as many at once as there are CPUs; finish waits for those that are left.
begun=""
start() {
    "$@" &
    begun="$begun $!"
    # shellcheck disable=SC2086
    set -- $begun
    [ $# -lt "$(nproc)" ] || finish
}
finish() {
    for one in $begun; do
        wait "$one" || exit 1
    done
    begun=""
}

python3 -B "$root/tools/apigen/apigen.py" emit wire "$root/api" "$work"
python3 -B "$fuzz/list_decoders.py" "$work/wire_calls.h" "$work/decoders.h"
cx16=$(uname -m | sed -n 's/x86_64/-mcx16/p')
image=$root/src/image
exec_includes=-I$root/src/softgpu/exec
for folder in "$root"/src/softgpu/exec/*/; do
    exec_includes="$exec_includes -I$folder"
done
# shellcheck disable=SC2086 # the folders, one word each
start build fuzz_ptx $cx16 -fno-strict-aliasing -fwrapv -Wno-unknown-pragmas \
    -Wno-missing-field-initializers -I"$root/src/softgpu/ptx" $exec_includes \
    "$root"/src/softgpu/ptx/*.c "$root"/src/softgpu/exec/*/*.c "$root/src/cuda/cuda_tensor_map.c" -lm
start build fuzz_ring
start build fuzz_decode "$work/wire_calls.c" "$root"/src/wire/*.c "$root/src/cuda/cuda_error.c"
start build fuzz_fatbin -I"$image" -I"$image/expand" -I"$root/src/softgpu/fatbin" \
    "$root"/src/softgpu/fatbin/*.c "$image"/*.c "$image"/expand/*.c -lzstd -llz4
start build fuzz_image -I"$image" -I"$image/expand" -I"$image/contents" -I"$image/reader" \
    -I"$root/src/softgpu/ptx" "$root"/src/softgpu/ptx/*.c "$image"/*.c "$image"/expand/*.c \
    "$image"/contents/*.c "$image/reader/image_facts.c" -lzstd -llz4
start build fuzz_toml -I"$root/src/funneld/config" "$root"/src/funneld/config/toml*.c
cli=$root/src/cli
# shellcheck disable=SC2086 # words of pkg-config
start build fuzz_answers -DFUNNEL_VERSION='"fuzz"' \
    $(pkg-config --cflags --libs jansson 2>/dev/null && echo -DHAVE_JANSSON) \
    -I"$cli/core" -I"$cli/views" -I"$cli/top" -I"$root/src/control" "$cli"/views/client_*.c \
    "$cli"/views/view_[jlt]*.c "$cli/core/snapshot.c" "$cli/core/cli.c" "$cli/top/top_sample.c" \
    "$root"/src/control/*.c
start build fuzz_http -I"$root/src/funneld/http" "$root/src/funneld/http/http_parse.c"
funneld=$root/src/funneld
# shellcheck disable=SC2086 # words of pkg-config
start build fuzz_servers -DFUNNEL_VERSION='"fuzz"' -I"$root/src/control" -I"$funneld/limits" \
    -I"$funneld/core" -I"$funneld/accounting" -I"$funneld/servers" "$root"/src/control/*.c \
    "$funneld"/limits/*.c "$funneld"/core/*.c "$funneld"/accounting/*.c "$funneld"/servers/*.c \
    $(pkg-config --cflags --libs libevent_core)
finish
for target in fuzz_decode fuzz_toml; do
    python3 -B "$fuzz/corpus.py" unpack "$fuzz/corpus/$target.pack" "$work/corpus-$target"
done
# Text is found sooner from text.
mkdir -p "$work/corpus-fuzz_ptx"
sed '1,/^\.address_size/d' "$root/tests/unit/softgpu/data/features.ptx" \
    >"$work/corpus-fuzz_ptx/features"
mkdir -p "$work/corpus-fuzz_http"
printf 'GET /api/limit?server=1&id=2 HTTP/1.1\r\nHost: [::1]:9400\r\nAuthorization: Bearer 00ff\r\n%s' \
    'Accept: application/openmetrics-text' >"$work/corpus-fuzz_http/request"
mkdir -p "$work/corpus-fuzz_image"
cp "$root"/tests/api/driver/kernels.ptx "$root"/tests/api/driver/kernels.fatbin \
    "$work/corpus-fuzz_image"
{
    printf 'P\355U\272\001\000\020\000\000\000\000\000\000\000\000\000' # empty: a bundle's first
    cat "$root/tests/api/driver/kernels.fatbin" "$root/tests/api/driver/kernels.fatbin"
} >"$work/corpus-fuzz_image/bundle"
start run fuzz_ring 1024
start run fuzz_decode 4096
start run fuzz_fatbin 4096
start run fuzz_ptx 32768
start run fuzz_toml 2048
start run fuzz_image 32768
start run fuzz_answers 2048
start run fuzz_http 1024
start run fuzz_servers 8192
finish
