// cairn.hpp - cairn.h with the manners of C++17 and later: objects that release themselves, containers as arguments, options
// by name, closures as ops, tables to walk over. Nothing here that is not in cairn.h, where every function's contract is.
// Header-only; needs libcairn. Every call of cairn.h is reached, but for those that objects make unneeded.
//
// Rules that hold for every call
//   Errors     A call that fails throws cairn::Error: status, message and, where memory was wanting, the bytes. Where the
//              compiler was told -fno-exceptions, or CAIRN_HPP_NO_EXCEPTIONS is defined before this header, it returns
//              cairn::Result<T> instead, which holds a T or the Error and, in C++23, is a std::expected. cairn::Outcome<T> is
//              what calls return, T or Result<T>. Files compiled either way can be linked together. Where calls throw,
//              cairn::attempt([&] { ... }) gives the Result of a single one. The errors: lines here name statuses besides
//              INVALID_ARGUMENT, OUT_OF_MEMORY and INTERNAL. Containers of this header throw std::bad_alloc.
//   Ownership  An object is a reference to a handle: copying it retains, and both name the same thing; the order in which
//              references are dropped never matters. adopt, share, View and detach() are the ways from and to handles of C. A
//              default object is empty; calls with one fail with INVALID_ARGUMENT. What a method returns is the caller's;
//              structs of cairn.h borrow their texts from the object that they were asked of.
//   Threads    As cairn.h says, by class: graphs being built, sessions and steppers are used by one thread at a time, all
//              other objects by any. References may be copied and dropped anywhere. Session::cancel: any thread, at any time.
//   Units      Sizes are bytes, times seconds. Texts are UTF-8 without NUL.
//   Arguments  Text: a literal, std::string, std::filesystem::path. Span<const T>: a list in braces, an array, any container
//              whose elements lie in a row. Options: the struct of cairn.h, or the class of that name, which holds what it is
//              given. Constants are those of cairn.h.
#ifndef CAIRN_HPP_
#define CAIRN_HPP_

#include "cairn.h"
#include "cpp/config.hpp"
#include "cpp/custom_op.hpp"
#include "cpp/data.hpp"
#include "cpp/error.hpp"
#include "cpp/generator.hpp"
#include "cpp/graph.hpp"
#include "cpp/handle.hpp"
#include "cpp/instance.hpp"
#include "cpp/model.hpp"
#include "cpp/pictures.hpp"
#include "cpp/plan.hpp"
#include "cpp/plan_options.hpp"
#include "cpp/session.hpp"
#include "cpp/span.hpp"
#include "cpp/stepper.hpp"

#endif  // CAIRN_HPP_
