//! Checks of a configuration's values.

use crate::RunError;

/// A count must be from 1 to `largest`; `key` is where it stands.
pub fn check_count(key: &str, value: usize, largest: usize) -> Result<(), RunError> {
    if (1..=largest).contains(&value) {
        return Ok(());
    }
    let rule = format!("must be from 1 to {largest}");
    Err(RunError::value(key, value, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_has_two_ends() {
        assert!(check_count("n", 1, 3).is_ok() && check_count("n", 3, 3).is_ok());
        for value in [0, 4] {
            let error = check_count("n", value, 3).unwrap_err().to_string();
            assert_eq!(error, format!("n = {value}: must be from 1 to 3"));
        }
    }
}
