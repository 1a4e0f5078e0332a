// SPDX-License-Identifier: Apache-2.0
//
// What ThreadSanitizer must not report. Debian's Abseil is not instrumented, so a reference that is
// dropped inside the library is not seen to happen before the delete that follows in our code.

extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:*Status::Unref*\n"; }
