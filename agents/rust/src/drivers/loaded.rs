//! Libraries that are loaded at run time, and the functions of their C interfaces.

use crate::failure::{Failure, Result};
use std::ffi::{CStr, CString, c_int, c_void};

pub type Handle = *mut c_void;

/// Declares the functions as fields, and loads all of them by their names.
macro_rules! functions {
    ($library:literal; $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[derive(Debug)]
        pub struct Functions { $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl Functions {
            /// Loads the library at this path, which then stays loaded.
            pub fn load(path: &str) -> $crate::failure::Result<Functions> {
                let library = $crate::drivers::loaded::open(path)?;
                $(
                    // SAFETY: the type is the function's own, as declared in the library's header.
                    let $name = unsafe {
                        std::mem::transmute::<$crate::drivers::loaded::Handle, unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                            $crate::drivers::loaded::find(library, path, $library, stringify!($name))?
                        )
                    };
                )*
                Ok(Functions { $($name,)* })
            }
        }
    };
}

pub(crate) use functions;

/// Loads the library at this path, for its own functions' callers alone.
pub fn open(path: &str) -> Result<Handle> {
    load(path, libc::RTLD_LAZY | libc::RTLD_LOCAL)
}

/// Loads a library whose symbols those that are loaded later may use.
pub fn provide(path: &str) -> Result<()> {
    load(path, libc::RTLD_LAZY | libc::RTLD_GLOBAL).map(drop)
}

fn load(path: &str, flags: c_int) -> Result<Handle> {
    let name = CString::new(path).map_err(|_| Failure::bad_message("library: contains a zero byte"))?;
    // SAFETY: the name ends with a zero byte; the loader runs the library's initialisers.
    let library = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if library.is_null() { Err(Failure::connect(format!("library {path}: {}", reason()))) } else { Ok(library) }
}

/// A function of the library `kind`, by its name.
pub fn find(library: Handle, path: &str, kind: &str, name: &str) -> Result<Handle> {
    let symbol = CString::new(name).expect("names have no zero byte");
    // SAFETY: the library is loaded and the name ends with a zero byte.
    let found = unsafe { libc::dlsym(library, symbol.as_ptr()) };
    if found.is_null() {
        Err(Failure::connect(format!("library {path}: is no {kind}: has no {name}")))
    } else {
        Ok(found)
    }
}

fn reason() -> String {
    // SAFETY: the text is the loader's own, and is copied at once.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { "can't be loaded".into() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}
