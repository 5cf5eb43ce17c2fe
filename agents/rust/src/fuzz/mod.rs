//! Targets of `make fuzz`: what hostile servers send, and what a broken controller asks. A panic is a finding.
//!
//! Compiled for tests, which replay the corpus, and with `--cfg fuzzing`, where libFuzzer replaces `main`.

#[cfg(fuzzing)]
mod memory;
mod requests;
mod sealed;
mod servers;
mod statements;
mod streams;
#[cfg(test)]
mod tests;

/// A target's name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("requests", requests::parse),
    ("statements", statements::parse),
    ("sealed", sealed::parse),
    ("postgres", |data| servers::meet(&servers::POSTGRES, data)),
    ("mysql", |data| servers::meet(&servers::MYSQL, data)),
    ("firebird", |data| servers::meet(&servers::FIREBIRD, data)),
    ("http-1", |data| servers::meet(&servers::HTTP_1, data)),
    ("http-2", |data| servers::meet(&servers::HTTP_2, data)),
    ("http-3", streams::meet),
    ("resp", |data| servers::meet(&servers::RESP, data)),
    ("memcached", |data| servers::meet(&servers::MEMCACHED, data)),
];

#[cfg(fuzzing)]
mod entry {
    use super::TARGETS;
    use std::sync::LazyLock;

    /// The target that `CIPHERCOST_FUZZ` names.
    static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
        let name = std::env::var("CIPHERCOST_FUZZ").unwrap_or_default();
        let found = TARGETS.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("CIPHERCOST_FUZZ={name:?} is no target")).1
    });

    libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
}
