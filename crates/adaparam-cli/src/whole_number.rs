//! Whole numbers as people type them.

/// A whole number of at least 0.
pub(crate) fn whole_number(text: &str) -> Result<u64, String> {
    let rule = || format!("must be a whole number from 0 to {}", u64::MAX);
    text.parse().map_err(|_| rule())
}
