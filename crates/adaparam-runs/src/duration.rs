//! Spans of time as people write them: `2h`, `90m`, `1h30m`.

use std::time::Duration;

use thiserror::Error;

/// A hundred years: longer than any run, and short enough to be added to any clock.
const LONGEST: Duration = Duration::from_hours(36_500 * 24);

/// Text that is no span of time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseDurationError {
    /// It is not written as one.
    #[error("must be a time such as 2h, 90m or 1h30m: whole numbers, each with d, h, m or s")]
    Form,
    /// It is longer than anything takes.
    #[error("must be a time of at most 36500d, a hundred years, such as 2h, 90m or 1h30m")]
    TooLong,
}

/// Reads a span of time.
pub fn parse_duration(text: &str) -> Result<Duration, ParseDurationError> {
    // The parser also knows months as `M`, milliseconds and fractions, which are slips of the hand in a budget.
    let known = |character: char| character.is_ascii_digit() || "dhms".contains(character);
    if !text.chars().all(known) || text.contains("ms") {
        return Err(ParseDurationError::Form);
    }
    match humantime::parse_duration(text) {
        Ok(time) if time <= LONGEST => Ok(time),
        Ok(_) | Err(humantime::DurationError::NumberOverflow) => Err(ParseDurationError::TooLong),
        Err(_) => Err(ParseDurationError::Form),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("2h", 7_200),
            ("90m", 5_400),
            ("1h30m", 5_400),
            ("45s", 45),
            ("1d2h3m4s", 93_784),
            ("0m", 0),
            ("30m1h", 5_400),
            ("36500d", 3_153_600_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in [
            "", "2", "h", "2x", "-2h", "1.5h", "2 h", "2h ", "2µ", "2ms", "2M", "2hm",
        ] {
            let refused = Err(ParseDurationError::Form);
            assert_eq!(parse_duration(text), refused, "{text:?}");
        }
    }

    #[test]
    fn an_absurd_time_is_refused() {
        for text in [
            "36501d",
            "36500d1s",
            "18446744073709551615s",
            "18446744073709551615d",
            "18446744073709551615s1s",
            "99999999999999999999h",
        ] {
            let refused = Err(ParseDurationError::TooLong);
            assert_eq!(parse_duration(text), refused, "{text:?}");
        }
        assert!(Instant::now().checked_add(LONGEST).is_some());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(days in 0_u64..100, hours in 0_u64..100, minutes in 0_u64..100, seconds in 0_u64..100) {
            let text = format!("{days}d{hours}h{minutes}m{seconds}s");
            let expected = days * 86_400 + hours * 3_600 + minutes * 60 + seconds;
            prop_assert_eq!(parse_duration(&text), Ok(Duration::from_secs(expected)));
        }

        #[test]
        fn no_text_panics_or_means_longer_than_a_clock_can_tell(text in "\\PC{0,12}|[0-9dhms]{0,24}") {
            if let Ok(time) = parse_duration(&text) {
                prop_assert!(time <= LONGEST);
            }
        }
    }
}
