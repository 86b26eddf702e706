#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with libFuzzer and sanitizers and runs each for some seconds.
#
#     tests/fuzz/run.sh BUILD_DIRECTORY [SECONDS]     (the corpus grows in BUILD_DIRECTORY/corpus-*)
#
# 0 seconds: only builds them.
#
# What earlier runs found worth keeping is in tests/fuzz/corpus (corpus.py).
set -eu

work=$1
seconds=${2:-10}
root=$(cd "$(dirname "$0")/../.." && pwd)
fuzz=$root/tests/fuzz

"$root/tests/sanitized_build.sh" address "$work"
if ! ninja -C "$work" -t query fuzzers >/dev/null 2>&1; then
    echo "fuzz: skipped, there is no clang with libFuzzer"
    exit 0
fi
ninja -C "$work" fuzzers
[ "$seconds" != 0 ] || exit 0
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"

# $1 = name of the target, $2 = longest input
run() {
    mkdir -p "$work/corpus-$1"
    echo "fuzz: $1 for $seconds seconds"
    "$work/tests/fuzz/$1" -max_total_time="$seconds" -max_len="$2" -timeout=60 -print_final_stats=1 \
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
