// SPDX-License-Identifier: Apache-2.0
//
// As strict_warnings.cc, of all mocks. That they override whatever there is, is seen where there
// are objects of them.

#include <type_traits>

#include "tests/codegen/corpus/fbs/helper_names_mock.verbena.h"
#include "tests/codegen/corpus/fbs/keywords_mock.verbena.h"
#include "tests/codegen/corpus/fbs/long_names_mock.verbena.h"
#include "tests/codegen/corpus/fbs/mixed_flat_mock.verbena.h"
#include "tests/codegen/corpus/fbs/mixed_mock.verbena.h"
#include "tests/codegen/corpus/fbs/namespaces_mock.verbena.h"
#include "tests/codegen/corpus/fbs/no_namespace_mock.verbena.h"
#include "tests/codegen/corpus/fbs/no_services_mock.verbena.h"
#include "tests/codegen/corpus/helper_names_mock.verbena.h"
#include "tests/codegen/corpus/keywords_mock.verbena.h"

template <class... Mocks>
constexpr bool kComplete = (!std::is_abstract_v<Mocks> && ...);

static_assert(
    kComplete<corpus::helper_names::MockStubStub, corpus::helper_names::MockStubAsync,
              corpus::keywords::MockclassStub, corpus::keywords::MockclassAsync,
              corpus::fbs::helper_names::MockGreeterStub_,
              corpus::fbs::helper_names::MockGreeterAsync_,
              corpus::fbs::keywords::MocknamespaceStub, corpus::fbs::keywords::MocknamespaceAsync,
              corpus::fbs::mixed::MockGreeterStub, corpus::fbs::mixed_proto::MockGreeterStub,
              corpus::fbs::outer::inner::MockGreeterStub, MocktestingStub, MockstdAsync>);
