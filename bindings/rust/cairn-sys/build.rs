//! Finds the installed library by pkg-config and tells cargo how to link it.
//!
//! Programs under cargo (`cargo test`, `cargo run`) find a library outside the system's folders, too: links to it lie
//! in the build folder, which cargo puts on their search path. Elsewhere the usual ways hold: `ldconfig`,
//! `LD_LIBRARY_PATH`, or an rpath of the program's own.
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

const MAJOR: &str = "1";

fn main() {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let version = ask("--modversion");
    if version.split('.').next() != Some(MAJOR) {
        fail(&format!(
            "the installed cairn has version {version}, and this crate is for version {MAJOR}.x; install a cairn \
             {MAJOR}.x, or name the folder of its cairn.pc in PKG_CONFIG_PATH"
        ));
    }
    for word in ask("--libs-only-l").split_whitespace() {
        println!("cargo:rustc-link-lib={}", word.trim_start_matches("-l"));
    }
    let libdir = PathBuf::from(ask("--variable=libdir"));
    let libdir = libdir.canonicalize().unwrap_or(libdir);
    println!("cargo:libdir={}", libdir.display());
    println!("cargo:rustc-link-search=native={}", libdir.display());
    for path in ["libcairn.so", "libcairn.so.1"] {
        println!("cargo:rerun-if-changed={}", libdir.join(path).display());
    }
    link_beside(&libdir);
}

/// What pkg-config says about cairn, without blanks at its ends.
fn ask(question: &str) -> String {
    let program = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let answer = match Command::new(&program).args([question, "cairn"]).output() {
        Ok(answer) => answer,
        Err(error) => fail(&format!(
            "cannot run '{program}', which finds the installed cairn: {error}; install pkg-config, or name another \
             program like it in PKG_CONFIG"
        )),
    };
    if !answer.status.success() {
        fail(&format!(
            "pkg-config does not know cairn; install it (cmake --install) and name the folder of its cairn.pc, \
             PREFIX/lib/.../pkgconfig, in PKG_CONFIG_PATH (now {:?}). pkg-config said:\n{}",
            std::env::var("PKG_CONFIG_PATH").unwrap_or_default(),
            String::from_utf8_lossy(&answer.stderr).trim()
        ));
    }
    String::from_utf8_lossy(&answer.stdout).trim().to_string()
}

/// Links to the shared library in the build folder. Without them the system's search path must name it.
fn link_beside(libdir: &Path) {
    let folder = match std::env::var_os("OUT_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => fail("OUT_DIR is not set: cargo sets it for build scripts"),
    };
    let name = format!("libcairn.so.{MAJOR}");
    let (library, link) = (libdir.join(&name), folder.join(&name));
    if !library.exists() {
        return;
    }
    let _ = std::fs::remove_file(&link);
    if let Err(error) = std::os::unix::fs::symlink(&library, &link) {
        fail(&format!("cannot make the link {} to {}: {error}", link.display(), library.display()));
    }
    println!("cargo:rustc-link-search=native={}", folder.display());
}

fn fail(message: &str) -> ! {
    eprintln!("cairn-sys: {message}");
    exit(1);
}
