#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plugin_test.sh PROTOC PLUGIN OPTIONS_PROTO: what users of plain protoc see.

set -uo pipefail

protoc="$PWD/$1"
plugin="$PWD/$2"
options_folder="$PWD/${3%/verbena/options.proto}"
source tests/support/expect.sh
cd "$TEST_TMPDIR"

# generate ARGUMENT... FILE: status in $status, stderr in the file "stderr".
generate() {
  status=0
  "$protoc" --plugin=protoc-gen-verbena="$plugin" "$@" 2>stderr || status=$?
}

mkdir -p dir out
cat >dir/streams.proto <<'PROTO'
syntax = "proto3";
package p;
message M {}
service S {
  rpc Unary(M) returns (M);
    rpc Watch(M) returns (stream M);
}
PROTO

generate --verbena_out=out dir/streams.proto
expect_equal "a streaming method is no error" 0 "$status"
expect_text "a streaming method is a warning with its place" \
  "dir/streams.proto:6:5: warning: p.S.Watch is a streaming method" stderr
expect_equal "the unary method beside it is no warning" 1 "$(wc -l <stderr)"
expect_text "the header says what is missing" "// Watch has no code here" out/dir/streams.verbena.h
expect_text "the header says where it is declared" "(dir/streams.proto:6)" out/dir/streams.verbena.h

generate --verbena_out=include_prefix=gen/x:out dir/streams.proto
expect_text "include_prefix in the header" '#include "gen/x/dir/streams.pb.h"' \
  out/dir/streams.verbena.h
expect_text "include_prefix in the source" '#include "gen/x/dir/streams.verbena.h"' \
  out/dir/streams.verbena.cc

generate --verbena_out=colour=red:out dir/streams.proto
expect_equal "an unknown option is an error" 1 "$status"
expect_text "an unknown option is named, with the known ones" \
  'unknown option "colour" in --verbena_out=colour=red:...; the options are: include_prefix' stderr

printf 'syntax = "proto3";\n\npackage p.namespace;\n' >dir/package.proto
generate --verbena_out=out dir/package.proto
expect_equal "a package that cannot be compiled is an error" 1 "$status"
expect_text "the error has its place, once" \
  '--verbena_out: dir/package.proto:3:1: package "p.namespace" contains "namespace"' stderr
expect_text "the error has a remedy" "rename the package" stderr
[[ ! -e out/dir/package.verbena.h ]]
expect_equal "nothing is written after an error" 0 $?

printf 'syntax = "proto3"; message M { optional int32 i = 1; } service S {}\n' >dir/optional.proto
generate --verbena_out=out dir/optional.proto
expect_equal "proto3's optional is supported" 0 "$status"
expect_equal "without a warning" 0 "$(wc -l <stderr)"

cat >dir/upload.proto <<'PROTO'
syntax = "proto3";
package p;
import "verbena/options.proto";
message M {
  bytes b = 1 [(verbena.placement) = PAYLOAD];
}
service S {
  rpc F(M) returns (M);
}
PROTO

generate_with_options() { generate -I. -I"$options_folder" "$@"; }

generate_with_options --cpp_out=out --verbena_out=include_prefix=gen:out dir/upload.proto
expect_equal "a field that travels outside is no error" 0 "$status"
expect_equal "and no warning" 0 "$(wc -l <stderr)"
expect_text "its message has a class around it" "class PlacedM final {" out/dir/upload.verbena.h
expect_text "protoc includes the option as it is imported" '#include "verbena/options.pb.h"' \
  out/dir/upload.pb.h
generate_with_options --cpp_out=out verbena/options.proto
expect_equal "protoc finds the option's own code to generate" 0 "$status"
[[ -e out/verbena/options.pb.h ]]
expect_equal "and writes it where it is included from" 0 $?

sed -i 's/bytes b/string b/' dir/upload.proto
generate_with_options --verbena_out=out dir/upload.proto
expect_equal "a mark on another type is an error" 1 "$status"
expect_text "which has its place" "dir/upload.proto:5:3: p.M.b is marked PAYLOAD" stderr
expect_text "and a remedy" "remove the mark, or make it bytes" stderr

cat >dir/below.proto <<'PROTO'
syntax = "proto3";
import "verbena/options.proto";
message M { bytes b = 1 [(verbena.placement) = PAYLOAD]; }
message Holder { M m = 1; }
service S {
  rpc F(Holder) returns (Holder);
}
PROTO
generate_with_options --verbena_out=out dir/below.proto
expect_equal "a mark below the request is an error" 1 "$status"
expect_text "which is the method's" "dir/below.proto:6:3: S.F uses message Holder" stderr

[[ "$failures" == 0 ]]
