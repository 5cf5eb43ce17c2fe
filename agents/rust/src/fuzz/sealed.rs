//! What a table returns where sealed values should be.

use crate::envelope::{Key, Vault};
use std::cell::RefCell;

thread_local! {
    static VAULT: RefCell<Vault> = RefCell::new(vault());
}

fn vault() -> Vault {
    Key::read("aes256-gcm", &"5a".repeat(32), None)
        .map(|key| Vault::new(&key).expect("OpenSSL has AES-GCM"))
        .expect("a key")
}

pub fn parse(data: &[u8]) {
    VAULT.with_borrow_mut(|vault| {
        let opened = open(|row| vault.put(data, row));
        let digits: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("\\x{digits}");
        let of_text = open(|row| vault.put_text(text.as_bytes(), row));
        if crate::envelope::is_sealed(data) {
            assert_eq!(opened, of_text, "as bytes and as PostgreSQL's text");
        } else {
            assert_eq!((opened.as_deref(), of_text.as_deref()), (Ok(data), Ok(text.as_bytes())));
        }
        let mut sealed = data.to_vec();
        vault.seal(&mut sealed, 0, data.len()).expect("AES-GCM seals whatever it is given");
        assert_eq!(open(|row| vault.put(&sealed[data.len()..], row)).as_deref(), Ok(data), "sealed and opened");
        let _ = open(|row| vault.put_text(data, row));
    });
}

/// The opened value, or why it does not open. What was in the row before stays.
fn open(put: impl FnOnce(&mut Vec<u8>) -> crate::failure::Result<()>) -> Result<Vec<u8>, String> {
    let mut row = b"row".to_vec();
    let done = put(&mut row);
    assert!(row.starts_with(b"row"));
    done.map(|()| row.split_off(3)).map_err(|failure| failure.to_string())
}
