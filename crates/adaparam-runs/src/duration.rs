//! Spans of time as people write them: `2h`, `90m`, `1h30m`.

use std::time::Duration;

use thiserror::Error;

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// Text that is no span of time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "must be a time such as 2h, 90m or 1h30m: whole numbers, each with d, h, m or s, the largest unit first"
)]
pub struct ParseDurationError;

/// Reads a span of time.
pub fn parse_duration(text: &str) -> Result<Duration, ParseDurationError> {
    let mut rest = text;
    let mut units = UNITS.as_slice();
    let mut seconds = 0_u64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let unit = after.chars().next().ok_or(ParseDurationError)?;
        let place = units.iter().position(|(name, _)| *name == unit);
        let place = place.ok_or(ParseDurationError)?;
        let number: u64 = number.parse().map_err(|_| ParseDurationError)?;
        let part = number.checked_mul(units[place].1);
        seconds = part
            .and_then(|part| seconds.checked_add(part))
            .ok_or(ParseDurationError)?;
        units = &units[place + 1..];
        rest = &after[unit.len_utf8()..];
    }
    if text.is_empty() {
        return Err(ParseDurationError);
    }
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
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
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "2",
            "h",
            "2x",
            "-2h",
            "1.5h",
            "30m1h",
            "1h1h",
            "2 h",
            "2h ",
            "2µ",
            "99999999999999999999h",
            "18446744073709551615d",
        ] {
            assert_eq!(parse_duration(text), Err(ParseDurationError), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(days in 0_u64..100, hours in 0_u64..100, minutes in 0_u64..100, seconds in 0_u64..100) {
            let text = format!("{days}d{hours}h{minutes}m{seconds}s");
            let expected = days * 86_400 + hours * 3_600 + minutes * 60 + seconds;
            prop_assert_eq!(parse_duration(&text), Ok(Duration::from_secs(expected)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = parse_duration(&text);
        }
    }
}
