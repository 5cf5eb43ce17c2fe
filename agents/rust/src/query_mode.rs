//! How statements travel to a server.

/// How statements travel, with pgbench's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryMode {
    /// Prepared once, then run.
    #[default]
    Prepared,
    /// Parsed again each time, with values beside the text.
    Extended,
    /// As one text with its values.
    Simple,
}
