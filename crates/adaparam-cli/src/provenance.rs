//! How this run came about: the command, the program, the machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adaparam_runs::record::RunRecord;

/// A record of this process, for a run on `device`.
pub(crate) fn record(device: &str, threads: usize) -> RunRecord {
    let arguments: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    RunRecord {
        command: format!("adaparam {}", arguments.join(" ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("ADAPARAM_COMMIT").to_owned(),
        burn: env!("ADAPARAM_BURN").to_owned(),
        machine: machine(),
        device: device.to_owned(),
        threads,
        started: utc(SystemTime::now()),
        ..RunRecord::default()
    }
}

fn quoted(argument: String) -> String {
    if argument.is_empty() || argument.contains(char::is_whitespace) {
        format!("'{argument}'")
    } else {
        argument
    }
}

/// Processor, cores and operating system.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{processor}, {cores} cores, {}", std::env::consts::OS)
}

/// `2026-11-15 22:09 UTC`.
fn utc(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The date of a day since 1970-01-01. Years begin in March, so that a leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_names_the_burn_that_was_built() {
        let burn = record("cpu", 1).burn;
        let lock = include_str!("../../../Cargo.lock");
        assert!(
            lock.contains(&format!("name = \"burn\"\nversion = \"{burn}\"")),
            "{burn}"
        );
    }

    #[test]
    fn dates_are_civil_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_772, (2026, 11, 15)),
        ] {
            assert_eq!(civil(days), date);
        }
    }
}
