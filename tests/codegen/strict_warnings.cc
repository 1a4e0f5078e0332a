// SPDX-License-Identifier: Apache-2.0
//
// All generated sources of the corpus in one translation unit: they compile without a warning, and
// do not get in each other's way.

#include "tests/codegen/corpus/comments.verbena.cc"
#include "tests/codegen/corpus/dash-and.dots.v1.verbena.cc"
#include "tests/codegen/corpus/deep_package.verbena.cc"
#include "tests/codegen/corpus/generated.verbena.cc"
#include "tests/codegen/corpus/helper_names.verbena.cc"
#include "tests/codegen/corpus/imports.verbena.cc"
#include "tests/codegen/corpus/keywords.verbena.cc"
#include "tests/codegen/corpus/letter_case.verbena.cc"
#include "tests/codegen/corpus/lite.verbena.cc"
#include "tests/codegen/corpus/long_names.verbena.cc"
#include "tests/codegen/corpus/nested_types.verbena.cc"
#include "tests/codegen/corpus/no_methods.verbena.cc"
#include "tests/codegen/corpus/no_package.verbena.cc"
#include "tests/codegen/corpus/no_services.verbena.cc"
#include "tests/codegen/corpus/package_absl.verbena.cc"
#include "tests/codegen/corpus/package_google.verbena.cc"
#include "tests/codegen/corpus/package_std.verbena.cc"
#include "tests/codegen/corpus/package_verbena.verbena.cc"
#include "tests/codegen/corpus/proto2.verbena.cc"
#include "tests/codegen/corpus/streaming.verbena.cc"
#include "tests/codegen/corpus/sub/dir/in_a_folder.verbena.cc"
#include "tests/codegen/corpus/well_known.verbena.cc"
