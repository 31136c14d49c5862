//! Texts: those that the library makes, those that it lends, and those that go to it.
use crate::error::{Error, Result};
use crate::handle::{make, Handle};
use cairn_sys as sys;
use std::ffi::{CStr, CString};
use std::ops::Deref;
use std::os::raw::c_char;
use std::path::Path;

/// A text or bytes that the library made, read in place: JSON, a page, a plan file. Clones are the same text.
///
/// `Send + Sync`: all its calls are `const` in `cairn.h`.
#[derive(Debug)]
pub struct Text(Handle<sys::cairn_text_t>);

// Only const calls are made with it.
unsafe impl Sync for Text {}

impl Text {
    pub(crate) fn make(
        call: impl FnOnce(*mut *mut sys::cairn_text_t, *mut sys::cairn_error_t) -> sys::cairn_status_t,
    ) -> Result<Text> {
        make(call).map(Text)
    }

    /// The bytes, without a copy.
    pub fn as_bytes(&self) -> &[u8] {
        // Data and size are of one immutable block, which lives as long as the text.
        unsafe {
            let data = sys::cairn_text_data(self.0.get());
            std::slice::from_raw_parts(data.cast(), sys::cairn_text_size(self.0.get()))
        }
    }

    /// The text, where the bytes are UTF-8: everything but plan files, and what a tokenizer decodes from odd tokens.
    pub fn as_str(&self) -> Result<&str> {
        std::str::from_utf8(self.as_bytes())
            .map_err(|error| Error::argument(format!("the bytes are no UTF-8 text ({error}); take as_bytes()")))
    }
}

impl Clone for Text {
    fn clone(&self) -> Text {
        Text(self.0.again())
    }
}

impl Deref for Text {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// As the bytes say, with U+FFFD where they are no UTF-8.
impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

/// `text` as the library takes it; `what` names it in the error.
pub(crate) fn c_text(what: &str, text: &str) -> Result<CString> {
    c_bytes(what, text.as_bytes())
}

pub(crate) fn c_path(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    c_bytes("a path", path.as_os_str().as_bytes())
}

fn c_bytes(what: &str, bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|error| {
        let at = error.nul_position();
        Error::argument(format!("{what} has a NUL at byte {at}: {:?}; leave it out", String::from_utf8_lossy(bytes)))
    })
}

/// A text that the library lends; "" for null.
///
/// # Safety
/// `text` is null or a C string that lives and does not change for `'a`.
pub(crate) unsafe fn lent<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    // The library's texts are UTF-8: names are checked when they are given.
    CStr::from_ptr(text).to_str().unwrap_or("")
}

/// The text in an array of a struct, up to its NUL.
pub(crate) fn from_chars(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Strings for the time of one call, and pointers to them.
#[derive(Default)]
pub(crate) struct Texts(Vec<CString>);

impl Texts {
    pub(crate) fn add(&mut self, what: &str, text: &str) -> Result<*const c_char> {
        let text = c_text(what, text)?;
        let pointer = text.as_ptr(); // of the heap: moving the CString leaves it where it is
        self.0.push(text);
        Ok(pointer)
    }

    /// Null for none.
    pub(crate) fn add_some(&mut self, what: &str, text: Option<&str>) -> Result<*const c_char> {
        text.map_or(Ok(std::ptr::null()), |text| self.add(what, text))
    }
}
