//! Devices of this machine, what a model would need, and a model's machine code as files.

use crate::error::status;
use crate::options::{c_text, ObjectsOptions};
use crate::{sys, Result, SessionOptions};
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// A device of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Its name for the option `device` of [`ModelOptions`](crate::ModelOptions).
    pub name: String,
    /// What it is, one line.
    pub about: String,
    /// Why no model can be opened on it; `None`: models can.
    pub why_not: Option<String>,
}

fn text(from: &[c_char]) -> String {
    let bytes: Vec<u8> = from.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The devices that models can be opened on, or why they cannot.
///
/// ```
/// let devices = jitrun::devices()?;
/// assert!(devices.iter().any(|d| d.name == "cpu" && d.why_not.is_none()));
/// # Ok::<(), jitrun::Error>(())
/// ```
pub fn devices() -> Result<Vec<Device>> {
    // SAFETY: no argument.
    let n = unsafe { sys::jit_device_count() };
    let one = |number| {
        let mut raw = sys::jit_device_info::new();
        // SAFETY: the struct has its size.
        status(|err| unsafe { sys::jit_device_get_info(number, &mut raw, err) })?;
        let why_not = Some(text(&raw.why_not)).filter(|why| !why.is_empty());
        Ok(Device { name: text(&raw.name), about: text(&raw.about), why_not })
    };
    (0..n).map(one).collect()
}

/// What a model and one session on it would take, from the headers of its files alone.
///
/// ```no_run
/// let session = jitrun::SessionOptions::new().set("context", 8192)?;
/// let needs = jitrun::model_needs("model.gguf", Some(&session))?;
/// if needs.weight_bytes + needs.kv_bytes + needs.pass_bytes > needs.available_bytes {
///     eprintln!("the model does not fit");
/// }
/// # Ok::<(), jitrun::Error>(())
/// ```
pub fn model_needs(path: impl AsRef<Path>, session: Option<&SessionOptions>) -> Result<sys::jit_needs> {
    let path = c_text("the path of the model", path.as_ref().as_os_str().as_bytes())?;
    let mut out = sys::jit_needs::new();
    let mut ask = |options| {
        // SAFETY: a text, options that live until the end of the call or are null, and a struct with its size.
        status(|err| unsafe { sys::jit_model_needs(path.as_ptr(), options, &mut out, err) })
    };
    match session {
        Some(session) => session.with_raw(|raw| ask(raw as *const _))?,
        None => ask(ptr::null())?,
    }
    Ok(out)
}

/// Writes the machine code of a model's passes for a graphics card into files; no card is needed.
///
/// ```no_run
/// let options = jitrun::ObjectsOptions::new().set("target", "gfx1101")?.set("dir", "objects")?;
/// let written = jitrun::write_objects("model.gguf", &options)?;
/// println!("{} kernels, {} bytes", written.kernels, written.bytes);
/// # Ok::<(), jitrun::Error>(())
/// ```
pub fn write_objects(path: impl AsRef<Path>, options: &ObjectsOptions) -> Result<sys::jit_objects> {
    let path = c_text("the path of the model", path.as_ref().as_os_str().as_bytes())?;
    let mut out = sys::jit_objects::new();
    // SAFETY: texts that live until the end of the call, and a struct with its size.
    status(|err| unsafe { sys::jit_write_objects(path.as_ptr(), options.raw(), &mut out, err) })?;
    Ok(out)
}
