//! Lets doctests find the shared library where cargo does not: what cargo of Debian 12 runs through rustdoc gets no search
//! path of its own. Later cargo needs nothing.
use std::process::Command;

/// The first release with which doctests were seen to find the library by themselves.
const FINDS_ITSELF: u32 = 95;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LD_LIBRARY_PATH");
    if let (Some(libdir), Some(minor)) = (std::env::var_os("DEP_CAIRN_LIBDIR"), rustc_minor()) {
        if minor < FINDS_ITSELF {
            let paths = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
            println!("cargo:rustc-env=LD_LIBRARY_PATH={}:{paths}", libdir.to_string_lossy());
        }
    }
}

/// 63 of "rustc 1.63.0".
fn rustc_minor() -> Option<u32> {
    let answer = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(answer.stdout).ok()?.split('.').nth(1)?.parse().ok()
}
