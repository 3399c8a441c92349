//! What went wrong, as a sentence of the library.

use crate::sys;
use std::fmt;
use std::os::raw::c_int;

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file could not be opened or read.
    Io,
    /// A file breaks its format's rules, or its weights lead to logits that are not finite.
    Format,
    /// Well formed, but jitrun does not do it.
    Unsupported,
    /// Not enough memory.
    Memory,
    /// A value of the caller's is out of range.
    Argument,
    /// The device cannot run this.
    Device,
    /// The session's context is full.
    Context,
    /// It was cancelled.
    Cancelled,
    /// A step of a batch computed none of the tokens that are due: a fault of jitrun.
    Stalled,
    /// A code that only a later library knows.
    Other(i32),
}

/// An error: its kind, and one sentence that names the object, the value found and the value expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        let message = message.into();
        Error { kind: ErrorKind::Argument, message }
    }

    pub(crate) fn memory(message: impl Into<String>) -> Self {
        let message = message.into();
        Error { kind: ErrorKind::Memory, message }
    }

    fn of(raw: &sys::jit_error) -> Self {
        let kind = match raw.code {
            sys::JIT_ERROR_IO => ErrorKind::Io,
            sys::JIT_ERROR_FORMAT => ErrorKind::Format,
            sys::JIT_ERROR_UNSUPPORTED => ErrorKind::Unsupported,
            sys::JIT_ERROR_MEMORY => ErrorKind::Memory,
            sys::JIT_ERROR_ARGUMENT => ErrorKind::Argument,
            sys::JIT_ERROR_DEVICE => ErrorKind::Device,
            sys::JIT_ERROR_CONTEXT => ErrorKind::Context,
            sys::JIT_ERROR_CANCELLED => ErrorKind::Cancelled,
            sys::JIT_ERROR_STALLED => ErrorKind::Stalled,
            code => ErrorKind::Other(code),
        };
        let bytes: Vec<u8> = raw.message.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
        Error { kind, message: String::from_utf8_lossy(&bytes).into_owned() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Room for the library's error.
pub(crate) fn room() -> sys::jit_error {
    sys::jit_error { code: 0, reserved: [0; 3], message: [0; 512] }
}

/// Calls a function that returns a status.
pub(crate) fn status(call: impl FnOnce(*mut sys::jit_error) -> c_int) -> Result<()> {
    let mut err = room();
    match call(&mut err) {
        sys::JIT_OK => Ok(()),
        _ => Err(Error::of(&err)),
    }
}

/// Calls a function that returns an address, or null and an error.
pub(crate) fn address<T>(call: impl FnOnce(*mut sys::jit_error) -> *mut T) -> Result<std::ptr::NonNull<T>> {
    let mut err = room();
    std::ptr::NonNull::new(call(&mut err)).ok_or_else(|| Error::of(&err))
}
