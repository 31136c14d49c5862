//! The declarations of `cairn.h`, as bindgen makes them (`bindings/rust/make_bindings.sh`). What each function promises
//! stands in that header; the crate `cairn` is the safe interface on top.
#![allow(non_camel_case_types, non_upper_case_globals)]

include!("bindings.rs");

/// The first version of the library with everything that is declared here, as `cairn_version_number` counts.
pub const VERSION_NUMBER: u32 = CAIRN_VERSION_MAJOR * 10000 + CAIRN_VERSION_MINOR * 100 + CAIRN_VERSION_PATCH;
