//! Moments as records tell them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999, in seconds since 1970.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// A moment to the minute: `2026-11-15 22:09 UTC`. A clock that is far off is told as the nearest year that has four
/// digits and is not before 1970.
pub fn utc(time: SystemTime) -> String {
    let time = time.clamp(UNIX_EPOCH, UNIX_EPOCH + LAST);
    let stamp = humantime::format_rfc3339_seconds(time).to_string();
    let (date, clock) = (&stamp[..10], &stamp[11..16]);
    format!("{date} {clock} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_to_the_minute() {
        for (seconds, told) in [
            (0, "1970-01-01 00:00 UTC"),
            (59 * 86_400, "1970-03-01 00:00 UTC"),
            (11_016 * 86_400 + 86_399, "2000-02-29 23:59 UTC"),
            (20_772 * 86_400 + 79_740, "2026-11-15 22:09 UTC"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), told);
        }
    }

    #[test]
    fn a_clock_that_is_far_off_is_told_too() {
        let day = Duration::from_hours(24);
        assert_eq!(utc(UNIX_EPOCH - day), "1970-01-01 00:00 UTC");
        assert_eq!(utc(UNIX_EPOCH + LAST + day), "9999-12-31 23:59 UTC");
    }
}
