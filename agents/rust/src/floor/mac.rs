//! HMAC under one key, computed again and again. The crate `openssl` can't reset one, and a new one for each page would cost more than
//! the cipher's own work.

use crate::failure::{Failure, Result};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl_sys as ffi;
use std::ptr::null;

pub struct Mac {
    context: *mut ffi::HMAC_CTX,
    bytes: usize,
}

impl Mac {
    /// Refuses unknown names.
    pub fn new(name: &str, key: &[u8]) -> Result<Mac> {
        let digest = match name {
            "hmac-sha1" => MessageDigest::sha1(),
            "hmac-sha256" => MessageDigest::sha256(),
            "hmac-sha512" => MessageDigest::sha512(),
            other => {
                let text = format!("mac: {other:?} is not one of hmac-sha1, hmac-sha256, hmac-sha512");
                return Err(Failure::bad_message(text));
            }
        };
        // SAFETY: the key is read before the call returns; Drop frees the context, and accepts null.
        let mac = Mac { context: unsafe { ffi::HMAC_CTX_new() }, bytes: digest.size() };
        let failed = || Failure::internal(format!("the MAC failed: {}", ErrorStack::get()));
        if mac.context.is_null() {
            return Err(failed());
        }
        // SAFETY: the context is not null; the length is the key's own.
        let done = unsafe {
            ffi::HMAC_Init_ex(mac.context, key.as_ptr().cast(), key.len() as _, digest.as_ptr(), std::ptr::null_mut())
        };
        if done == 1 { Ok(mac) } else { Err(failed()) }
    }

    /// Writes the MAC of two texts, one after the other, into `tag`.
    pub fn of(&mut self, first: &[u8], second: &[u8], tag: &mut Vec<u8>) -> std::result::Result<(), ErrorStack> {
        tag.resize(self.bytes, 0);
        let mut written = 0;
        // SAFETY: the context has a key, which null keeps; `tag` has room for the digest; lengths are the texts' own.
        let done = unsafe {
            ffi::HMAC_Init_ex(self.context, null(), 0, null(), std::ptr::null_mut()) == 1
                && ffi::HMAC_Update(self.context, first.as_ptr(), first.len()) == 1
                && ffi::HMAC_Update(self.context, second.as_ptr(), second.len()) == 1
                && ffi::HMAC_Final(self.context, tag.as_mut_ptr(), &mut written) == 1
        };
        if done { Ok(()) } else { Err(ErrorStack::get()) }
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        // SAFETY: the context is not used after this.
        unsafe { ffi::HMAC_CTX_free(self.context) };
    }
}
