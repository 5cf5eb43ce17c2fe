//! How transactions are drawn.

/// How an operation's transaction is drawn by weight.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Each operation by its own chance.
    #[default]
    Random,
    /// In every stretch of operations as often as the weights say.
    Even,
}
