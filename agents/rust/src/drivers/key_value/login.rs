//! What the logins of key-value stores share. There is no greeting: TLS has its own port and begins at once.

use crate::failure::{Failure, Result};
use crate::message::Server;

/// The password to send, if there is one. An error if another machine could read it.
pub fn password(asked: &Server) -> Result<Option<&str>> {
    match asked.password.as_deref() {
        Some(_) if asked.exposed() => {
            let text = "refused to send the password over an unencrypted connection; use TLS or a loopback address";
            Err(Failure::connect(text))
        }
        password => Ok(password),
    }
}

/// How the login authenticated.
pub fn auth(with_password: bool) -> String {
    if with_password { "password" } else { "none" }.into()
}
