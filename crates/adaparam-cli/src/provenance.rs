//! How this run came about: the command, the program, the machine.

use std::time::SystemTime;

use adaparam_runs::date::utc;
use adaparam_runs::record::RunRecord;

/// A record of this process, for a run on `device`.
pub(crate) fn record(device: &str, threads: usize) -> RunRecord {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        // A path need not be UTF-8; a record is.
        .map(|argument| quoted(argument.to_string_lossy().into_owned()))
        .collect();
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
    let system = std::env::consts::OS;
    format!("{}, {cores} cores, {system}", processor())
}

/// The name of the processor, or of its kind where the system does not tell.
pub(crate) fn processor() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_names_the_burn_that_was_built() {
        let burn = record("cpu", 1).burn;
        let lock = include_str!("../../../Cargo.lock");
        let entry = format!("name = \"burn\"\nversion = \"{burn}\"");
        assert!(lock.contains(&entry), "{burn}");
    }
}
