#pragma once

#include <penstock/error.hpp>

#include <nanobind/nanobind.h>

namespace penstock::python {

/// A batch was used after its loop went on.
class given_back : public error {
 public:
  using error::error;
};
/// A loader was used after close(), or while it was closed.
class closed : public error {
 public:
  closed() : error("the loader was closed; make another one") {}
};
/// A loader was used in a child that was forked from the process that made it.
class forked : public error {
 public:
  using error::error;
};

/// Text for people: bytes that are not UTF-8 (names in files may hold any) are replaced.
nanobind::object text(std::string_view bytes);
/// Names and paths: bytes that are not UTF-8 travel as os.fsdecode has them, so that they can be given back.
nanobind::object name(std::string_view bytes);

/// Penstock's exceptions become those of penstock._errors, with the same sentences and what they carry.
void bind_errors(nanobind::module_& m);

}  // namespace penstock::python
