//! Whether a model can fit into this machine.

use adaparam_lm::{LanguageModelConfig, MemoryForecast};
use adaparam_report::number;
use anyhow::bail;

/// Refuses runs that need more than all memory of the machine, `jobs` of them at a time.
pub(crate) fn refuse_what_cannot_fit<'a>(
    runs: impl IntoIterator<Item = (&'a LanguageModelConfig, usize)>,
    jobs: usize,
) -> anyhow::Result<()> {
    let forecast =
        |(config, vocabulary)| (MemoryForecast::of(config, vocabulary), config, vocabulary);
    let mut runs: Vec<_> = runs.into_iter().map(forecast).collect();
    runs.sort_by_key(|(need, ..)| std::cmp::Reverse(need.total()));
    let Some((first, config, vocabulary)) = runs.first() else {
        return Ok(());
    };
    let at_once = runs.iter().take(jobs.max(1)).map(|(need, ..)| need.total());
    let need = at_once.fold(MemoryForecast::PROGRAM, usize::saturating_add) as u64;
    let Some(there) = whole_memory().filter(|&there| need > there) else {
        return Ok(());
    };
    let megabytes = |bytes: u64| number::grouped(bytes / 1_000_000);
    let smaller = if first.total() as u64 <= there {
        "run fewer at a time with --jobs"
    } else if first.parameters > first.activations {
        "make model.hidden, model.embedding or model.layers smaller"
    } else {
        "make train.window or train.batch smaller"
    };
    bail!(
        "model: its {} parameters and windows of {} words of {} columns need {} MB to be trained{}, and this machine has {} \
         MB: {smaller}",
        number::grouped(config.model.parameter_count(*vocabulary) as u64),
        config.train.window,
        config.train.batch,
        megabytes(need),
        if jobs > 1 {
            format!(", {jobs} runs at a time")
        } else {
            String::new()
        },
        megabytes(there)
    )
}

/// Refuses to read a text in windows whose buffers need more than all memory of the machine: how long windows are, and how
/// wide the model is, was chosen by whoever made it.
pub(crate) fn refuse_what_cannot_be_read(
    config: &LanguageModelConfig,
    vocabulary: usize,
    [steps, columns]: [usize; 2],
) -> anyhow::Result<()> {
    let need = MemoryForecast::of_reading(config, vocabulary, [steps, columns]) as u64;
    let Some(there) = whole_memory().filter(|&there| need > there) else {
        return Ok(());
    };
    bail!(
        "model: to read windows of {steps} words (train.window) of {columns} columns needs {} MB, and this machine has {} MB: \
         name fewer columns with --batch, or evaluate a shorter text",
        number::grouped(need / 1_000_000),
        number::grouped(there / 1_000_000)
    )
}

/// Memory and swap space in bytes, or the limit that is set for this process, where the system tells.
pub(crate) fn whole_memory() -> Option<u64> {
    let there = memory_in(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse().ok());
    Some(limit.map_or(there, |limit: u64| limit.min(there)))
}

/// Memory in bytes that programs can have now without swapping, where the system tells.
pub(crate) fn free_memory() -> Option<u64> {
    kilobytes_in(
        &std::fs::read_to_string("/proc/meminfo").ok()?,
        "MemAvailable:",
    )
    .map(|kilobytes| 1024 * kilobytes)
}

/// The most memory that this process has had so far, in bytes, where the system tells.
pub(crate) fn peak_memory() -> Option<u64> {
    peak_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(1024 * kilobytes)
}

fn kilobytes_in(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn memory_in(meminfo: &str) -> Option<u64> {
    let swap = kilobytes_in(meminfo, "SwapTotal:").unwrap_or(0);
    Some(1024 * (kilobytes_in(meminfo, "MemTotal:")? + swap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_swap_are_read() {
        let text = "MemTotal:        2000 kB\nMemFree: 5 kB\nSwapTotal:       1000 kB\n";
        assert_eq!(memory_in(text), Some(3000 * 1024));
        assert_eq!(memory_in("MemTotal: 7 kB\n"), Some(7 * 1024));
        assert_eq!(memory_in("nothing of the kind"), None);
    }

    #[test]
    fn the_peak_of_a_process_is_read() {
        assert_eq!(
            peak_in("Name:\ta\nVmHWM:\t    2000 kB\n"),
            Some(2000 * 1024)
        );
        assert_eq!(peak_in("nothing of the kind"), None);
    }

    #[test]
    fn windows_larger_than_any_machine_are_not_read() {
        if whole_memory().is_none() {
            return;
        }
        let config = LanguageModelConfig::default();
        let refused = |steps| refuse_what_cannot_be_read(&config, 10_000, [steps, 10]).err();
        assert!(refused(70).is_none());
        let error = refused(1 << 34).unwrap().to_string();
        assert!(error.contains("(train.window) of 10 columns"), "{error}");
    }

    #[test]
    fn a_model_larger_than_any_machine_is_refused() {
        let refused = |config: &LanguageModelConfig, jobs| {
            let error = refuse_what_cannot_fit([(config, 10_000); 64], jobs).err();
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        if whole_memory().is_none() {
            return;
        }
        let usual = LanguageModelConfig::default();
        assert_eq!(refused(&usual, 1), "");
        let mut config = usual.clone();
        (config.model.hidden, config.model.layers) = (65_536, 64);
        assert!(refused(&config, 1).contains("make model.hidden"));
        let mut config = usual.clone();
        config.train.window = 1_000_000;
        assert!(refused(&config, 1).contains("make train.window"));
        let mut config = usual;
        let there = whole_memory().unwrap() as usize;
        // Half of the memory fits once, not ten times.
        while MemoryForecast::of(&config, 10_000).total() < there / 2 {
            config.train.batch += 10;
        }
        assert_eq!(refused(&config, 1), "");
        assert!(refused(&config, 10).contains("fewer at a time"));
    }
}
