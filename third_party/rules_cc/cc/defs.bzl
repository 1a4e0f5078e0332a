# SPDX-License-Identifier: Apache-2.0
"""Stands in for rules_cc: Bazel's built-in C++ rules under the names that rules_cc gives them."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_libc_top_alias = native.cc_libc_top_alias
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_alias = native.cc_toolchain_alias
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
