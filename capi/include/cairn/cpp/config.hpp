// How calls fail in this translation unit, and what Result is made of. Each way has an inline namespace of its own, so that
// files that were compiled in different ways can be linked into one program.
#ifndef CAIRN_CPP_CONFIG_HPP_
#define CAIRN_CPP_CONFIG_HPP_

#if __cplusplus < 201703L
#error "cairn.hpp needs C++17 or later: compile with -std=c++17, or use cairn.h"
#endif

#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_expected)
#include <expected>
#endif

// 1: a call that fails throws cairn::Error. 0: it returns cairn::Result; by choice (CAIRN_HPP_NO_EXCEPTIONS), or because the
// compiler was told that there are no exceptions.
#if defined(CAIRN_HPP_NO_EXCEPTIONS) || !defined(__cpp_exceptions)
#define CAIRN_HPP_THROWS 0
#else
#define CAIRN_HPP_THROWS 1
#endif

#if defined(__cpp_lib_expected)
#define CAIRN_HPP_RESULT expected_result
#else
#define CAIRN_HPP_RESULT own_result
#endif
// Files without exceptions have no code that would stop those of closures in files that only chose not to throw.
#if CAIRN_HPP_THROWS
#define CAIRN_HPP_NAMESPACE v1
#elif defined(__cpp_lib_expected) && defined(__cpp_exceptions)
#define CAIRN_HPP_NAMESPACE v1_expected_result
#elif defined(__cpp_lib_expected)
#define CAIRN_HPP_NAMESPACE v1_bare_expected_result
#elif defined(__cpp_exceptions)
#define CAIRN_HPP_NAMESPACE v1_own_result
#else
#define CAIRN_HPP_NAMESPACE v1_bare_own_result
#endif

// Around callbacks of the program's own, whose exceptions must not go further, whatever calls do.
#if defined(__cpp_exceptions)
#define CAIRN_HPP_TRY try
#define CAIRN_HPP_IGNORE_THROWN \
  catch (...) {                 \
  }
#else
#define CAIRN_HPP_TRY
#define CAIRN_HPP_IGNORE_THROWN
#endif

#endif  // CAIRN_CPP_CONFIG_HPP_
